// A grade with its asks answered on the spot, for whoever plays steps outside an episode: the gate, replay, tests.
import type { Answer, Ask, Environment, Graded } from './environment.ts'

/** Answers at once, or says why it cannot. */
export type Answerer = (ask: Ask) => Answer

/** Where there is nobody to ask. */
const nobody: Answerer = ({ kind }) => ({
  status: 'unknown',
  reason: `there is no ${kind === 'judge' ? 'judge' : 'custom grader'} to ask here`,
  by: {},
})

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
