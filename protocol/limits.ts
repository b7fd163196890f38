// Bounds on what a boundary lets in. Each is far above honest use and far below harm.

/** Largest request body, bytes. */
export const MAX_BODY_BYTES = 16 * 1024 * 1024
/** Deepest nesting of a JSON body: JSON.parse copes with more, recursion behind it does not. */
export const MAX_JSON_DEPTH = 64
/** Largest policy reply, bytes. */
export const MAX_REPLY_BYTES = 64 * 1024 * 1024
/** Most tokens that one turn may sample. */
export const MAX_TURN_TOKENS = 1_000_000
