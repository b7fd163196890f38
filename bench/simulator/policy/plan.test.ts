import { describe, expect, test } from 'vitest'
import type { Conversation } from './conversation.ts'
import type { Mix, Move } from './plan.ts'
import { nextMove, plansOf } from './plan.ts'
import { parseScripts, type Script } from './script.ts'
import { PROSE_END, writeCalls } from './wording.ts'

const SCRIPT = parseScripts(
  JSON.stringify({
    match: 'x',
    transcripts: {
      correct: {
        steps: [
          { call: 'look', args: { id: 1 } },
          { call: 'fix', args: { id: 1 } },
          { say: 'Fixed.' },
        ],
      },
      wrong: {
        steps: [
          { call: 'look', args: { id: 1 } },
          { call: 'fix', args: { id: 2 } },
          { say: 'Done.' },
        ],
      },
      forbidden: { steps: [{ call: 'drop', args: {} }, { say: 'Dropped.' }] },
    },
  }),
)[0] as Script

const after = (...turns: string[]): Conversation => ({
  text: '',
  firstUser: 'x',
  turns,
  partial: '',
})
const look = writeCalls([{ name: 'look', arguments: { id: 1 } }], 'hermes')
const fix = (id: number) => writeCalls([{ name: 'fix', arguments: { id } }], 'hermes')
const next = (mix: Mix, conversation: Conversation, seed = 'seed', temperature = 1) =>
  nextMove(plansOf(SCRIPT, mix), conversation, { seed, temperature, topP: 1 })

/** What a move does, in a word. */
function nameOf(move: Move | null): string {
  if (move === null) return 'end'
  if (move.kind !== 'speak') return move.kind
  const [call] = move.calls
  return call ? `${call.name} ${JSON.stringify(call.arguments)}` : move.say
}

function shares(mix: Mix, conversation: Conversation): Record<string, number> {
  const counts: Record<string, number> = {}
  for (let i = 0; i < DRAWS; i++) {
    const name = nameOf(next(mix, conversation, `seed ${i}`))
    counts[name] = (counts[name] ?? 0) + 1 / DRAWS
  }
  return counts
}
const DRAWS = 4000
// Five standard deviations of a share of 4,000 draws are at most 5 * sqrt(0.25 / 4000).
const WITHIN = 0.04

describe('the mixture', () => {
  const mix = { correct: 0.5, wrong: 0.25, forbidden: 0.25 }

  test('first turns have the weights of the transcripts that begin with them', () => {
    const first = shares(mix, after())
    expect(Math.abs((first['look {"id":1}'] ?? 0) - 0.75)).toBeLessThan(WITHIN)
    expect(Math.abs((first['drop {}'] ?? 0) - 0.25)).toBeLessThan(WITHIN)
  })

  test('later turns are drawn among the transcripts that agree, in proportion', () => {
    const second = shares(mix, after(look))
    expect(Math.abs((second['fix {"id":1}'] ?? 0) - 2 / 3)).toBeLessThan(WITHIN)
    expect(Math.abs((second['fix {"id":2}'] ?? 0) - 1 / 3)).toBeLessThan(WITHIN)
    expect(Object.keys(second)).toHaveLength(2)
  })

  test('temperature 0 follows the heaviest transcript', () => {
    const heavyWrong = { correct: 0.2, wrong: 0.5, forbidden: 0.3 }
    for (const seed of ['a', 'b', 'c'])
      expect(nameOf(next(heavyWrong, after(look), seed, 0))).toBe('fix {"id":2}')
  })

  test('weights of transcripts that a script lacks, and weights that are missing, count as nothing', () => {
    expect(nameOf(next({ heroic: 1, forbidden: 0.1 }, after()))).toBe('drop {}')
    expect(nameOf(next({}, after()))).toBe('look {"id":1}')
  })
})

describe('one place in a transcript', () => {
  const correct = { correct: 1 }

  test('a transcript is played to its end and then is over', () => {
    const turns = [look, fix(1), 'Fixed.']
    const played = [0, 1, 2, 3].map((n) => nameOf(next(correct, after(...turns.slice(0, n)))))
    expect(played).toEqual(['look {"id":1}', 'fix {"id":1}', 'Fixed.', 'end'])
  })

  test('a lead-in, reasoning and the other tag form do not hide where it is', () => {
    const tagged = writeCalls([{ name: 'look', arguments: { id: 1 } }], 'qwen3-coder')
    const said = `<think>\nHm.\n</think>\n\nLet me see.\n${tagged}`
    expect(nameOf(next({ correct: 1, forbidden: 100 }, after(said)))).toBe('fix {"id":1}')
  })

  test('where arguments came back changed, the names of the calls decide', () => {
    const changed = writeCalls([{ name: 'look', arguments: { id: '0001' } }], 'hermes')
    expect(nameOf(next({ correct: 1, forbidden: 100 }, after(changed)))).toBe('fix {"id":1}')
  })

  test('a transcript that is over agrees with no further call', () => {
    const [script] = parseScripts(
      JSON.stringify({
        match: 'x',
        transcripts: {
          short: { steps: [{ call: 'look', args: { id: 1 } }] },
          long: {
            steps: [
              { call: 'look', args: { id: 1 } },
              { call: 'fix', args: { id: 1 } },
              { say: 'Ok.' },
            ],
          },
        },
      }),
    ) as [Script]
    const plans = plansOf(script, { short: 100, long: 1 })
    const dice = { seed: 's', temperature: 1, topP: 1 }
    expect(nameOf(nextMove(plans, after(look, fix(1)), dice))).toBe('Ok.')
  })

  test('where nothing agrees, the number of turns decides', () => {
    const unknown = writeCalls([{ name: 'dance', arguments: {} }], 'hermes')
    expect(nameOf(next(correct, after(unknown, unknown)))).toBe('Fixed.')
  })
})

describe('going wrong', () => {
  test('malformed breaks one call, at each of them as often, and then makes it right', () => {
    const first = shares({ malformed: 1 }, after())
    expect(Math.abs((first.broken ?? 0) - 0.5)).toBeLessThan(WITHIN)
    const broken = '<tool_call>\n{"name": "look", "arguments": {"id": 1}\n</tool_call>'
    expect(nameOf(next({ malformed: 1 }, after(broken)))).toBe('look {"id":1}')
    expect(nameOf(next({ malformed: 1 }, after(broken, look)))).toBe('fix {"id":1}')
    expect(nameOf(next({ malformed: 1 }, after(look)))).toBe('broken')
  })

  test('a refused block that the server took out of the turn counts as one that went wrong', () => {
    expect(nameOf(next({ malformed: 1 }, after('')))).toBe('look {"id":1}')
    expect(nameOf(next({ malformed: 1 }, after('Let me see.')))).toBe('look {"id":1}')
  })

  test('truncated runs on inside a call, and goes on rightly if it is asked again', () => {
    expect(shares({ truncated: 1 }, after()).cut).toBeGreaterThan(0.4)
    expect(nameOf(next({ truncated: 1 }, after('<tool_call>\n{"name": "look", "argu')))).toBe(
      'look {"id":1}',
    )
  })

  test('prose is one answer without calls', () => {
    expect(nameOf(next({ prose: 1 }, after()))).toBe('prose')
    expect(nameOf(next({ prose: 1, malformed: 100 }, after(`Well. ${PROSE_END}`)))).toBe('end')
  })
})

test('several calls in a step are one turn, with the words beside them', () => {
  const [script] = parseScripts(
    JSON.stringify({
      match: 'x',
      transcripts: {
        correct: {
          steps: [
            {
              say: 'Both.',
              calls: [
                { call: 'a', args: {} },
                { call: 'b', args: { n: 1 } },
              ],
            },
          ],
        },
      },
    }),
  ) as [Script]
  const move = nextMove(plansOf(script, { correct: 1 }), after(), {
    seed: 's',
    temperature: 1,
    topP: 1,
  })
  expect(move).toEqual({
    kind: 'speak',
    say: 'Both.',
    calls: [
      { name: 'a', arguments: {} },
      { name: 'b', arguments: { n: 1 } },
    ],
  })
})
