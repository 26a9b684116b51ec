#define SLOTS 4u

typedef struct Point Point;
typedef struct Shape Shape;
typedef struct Shapes Shapes;
/* A place in the picture. */
struct Point {
    int16_t x;
    int16_t y;
};
_Static_assert(sizeof(Point) == 4, "Point");
_Static_assert(offsetof(Point, x) == 0, "Point.x");
_Static_assert(offsetof(Point, y) == 2, "Point.y");

struct Shape {
    Point corner;
    Point size;
    uint32_t next;
    uint8_t marks[6];
};
_Static_assert(sizeof(Shape) == 20, "Shape");
_Static_assert(offsetof(Shape, corner) == 0, "Shape.corner");
_Static_assert(offsetof(Shape, size) == 4, "Shape.size");
_Static_assert(offsetof(Shape, next) == 8, "Shape.next");
_Static_assert(offsetof(Shape, marks) == 12, "Shape.marks");

/* All that is drawn. */
struct Shapes {
    Shape items[4];
    uint32_t count;
};
_Static_assert(sizeof(Shapes) == 84, "Shapes");
_Static_assert(offsetof(Shapes, items) == 0, "Shapes.items");
_Static_assert(offsetof(Shapes, count) == 80, "Shapes.count");

Point *move_by(Point *point, int16_t dx);
bool shapes_add(Shapes *self, Shape *like);
Shape *shapes_largest(Shapes *self);
int32_t walk(Shapes *shapes, uint32_t i);



/* From golden/structs.py. */
/* The shape with the widest size, or None where there is none. */
#line 32 "golden/structs.py"
Shape *shapes_largest(Shapes *self) {

    Shape *best = NULL;
    for (Shape *shape = self->items, *shape_end = shape + self->count; shape < shape_end; shape++) {
        if (best == NULL || shape->size.x > best->size.x) {
            best = shape; } }
    return best;
}
#line 41 "golden/structs.py"
bool shapes_add(Shapes *self, Shape *like) {
    if (self->count == SLOTS) {
        return false; }
    *&self->items[self->count] = *like;
    self->count++;
    return true;
}
#line 50 "golden/structs.py"
Point *move_by(Point *point, int16_t dx) {
    point->x = (int16_t)(point->x + dx);
    return point;
}
#line 56 "golden/structs.py"
int32_t walk(Shapes *shapes, uint32_t i) {
    Shape *shape = &shapes->items[i];
    shape->marks[1 * 3 + 2] = (uint8_t)(shape->marks[1 * 3 + 2] + 1);
    Point *corner = move_by(&shape->corner, 2);
    Shape *last = shapes_largest(shapes);
    if (last == NULL) {
        return 0; }
    return (int32_t)corner->x + last->corner.y + shape->marks[i];
}
