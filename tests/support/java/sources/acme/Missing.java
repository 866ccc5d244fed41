package acme;

/** What BadSource needs; tests leave it out of the jar. */
class Missing {
    static final String TOPIC = String.valueOf("x");
}
