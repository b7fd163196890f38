// The one form of every id on the wire.
import { z } from 'zod'

export const ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
const ID_HINT = 'an id is 1 to 128 of A-Z a-z 0-9 . _ - and begins with a letter or digit'

export const idSchema = z.string().regex(ID_PATTERN, ID_HINT)

/** `<pack>/<spec id>`, each part an id. */
export const taskIdSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}\/[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/,
    `a task id is <pack>/<task>; ${ID_HINT}`,
  )
