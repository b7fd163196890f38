// For tests: the shipped custom graders, called in this process. Their thread and its limits are tested in server/runtime.
import type { Graded } from '../environment.ts'
import { askGraders, type GraderBook, graded } from '../graded.ts'
import type { OfficeState } from './kernel/state.ts'
import { officeWith } from './office.ts'

type Grade = (input: unknown, params: unknown) => { score: number; evidence: string[] }

const folder = new URL('../packs/office/graders/', import.meta.url)
const known: Record<string, Grade> = {
  rota: (await import(new URL('rota.mjs', folder).href)).default,
}

export const shippedGraders: GraderBook = {
  names: Object.keys(known),
  answer({ grader, input, params }) {
    const grade = known[grader]
    if (!grade) throw new Error(`no shipped grader ${grader}`)
    const { score, evidence } = grade(structuredClone(input), params)
    return { status: 'scored', rewards: { score }, evidence, by: { grader } }
  },
}

/** The office with them, as the server has it. */
const officeWithShipped = officeWith(shippedGraders)

/** An episode's grade, with the asks of its custom checks answered. */
export const gradeOf = (state: OfficeState): Graded =>
  graded(officeWithShipped, state, askGraders(shippedGraders))
