// A grade with its asks answered on the spot, for whoever plays steps outside an episode: the gate, replay, tests.
import type { Answer, Ask, Environment, Graded, GraderAsk } from './environment.ts'

/** Answers at once, or says why it cannot. */
export type Answerer = (ask: Ask) => Answer

/** The custom graders that are registered, for the gate, which plays with them. */
export interface GraderBook {
  names: readonly string[]
  answer(ask: GraderAsk): Answer
}

/** Where there is nobody to ask. */
const nobody: Answerer = (ask): Answer =>
  ask.kind === 'judge'
    ? { status: 'unknown', reason: 'there is no judge to ask here', by: {} }
    : {
        status: 'error',
        reason: `custom grader ${ask.grader}: no loaded pack registers it`,
        by: { grader: ask.grader },
      }

/** Where no pack registers a custom grader. */
export const noGraders: GraderBook = { names: [], answer: nobody }

/** Custom graders are asked, and no judge is. */
export const askGraders =
  (graders: GraderBook): Answerer =>
  (ask) =>
    ask.kind === 'grade' ? graders.answer(ask) : nobody(ask)

/** Grades, answers what the grade asks for, and grades again, until it asks for nothing new. */
export function graded<State>(
  environment: Pick<Environment<State>, 'grade'>,
  state: State,
  answer: Answerer = nobody,
): Graded {
  const answers: Record<string, Answer> = {}
  for (;;) {
    const grade = environment.grade(state, answers)
    if (grade.status !== 'asks') return grade
    const open = grade.asks.filter(({ id }) => !Object.hasOwn(answers, id))
    if (open.length === 0)
      return {
        status: 'unavailable',
        reason: 'grade asked again for what was answered already',
        evidence: {},
      }
    for (const ask of open) answers[ask.id] = answer(ask)
  }
}
