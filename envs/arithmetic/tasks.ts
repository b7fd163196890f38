// Generated arithmetic tasks: the same index and seed give the same task, on any machine.
import { createHash } from 'node:crypto'
import type { JsonObject } from '../../protocol/json.ts'
import { evaluate, formatRational } from './expression.ts'

/** One draw in [0, bound) from a counter, so that no draw depends on another. */
function draw(seed: number, index: number, counter: number, bound: number): number {
  const hash = createHash('sha256').update(`arithmetic:${seed}:${index}:${counter}`).digest()
  return hash.readUInt32LE(0) % bound
}

const GOODS = ['crates', 'boxes', 'pallets', 'folders', 'bottles', 'chairs']

/** A shop-floor question whose answer is one whole number, with the ways in which a policy may play it. */
export function generateTask(index: number, seed: number): JsonObject {
  const pick = (counter: number, low: number, high: number) =>
    low + draw(seed, index, counter, high - low + 1)
  const [stacks, each, loose, sold] = [
    pick(0, 12, 98),
    pick(1, 12, 98),
    pick(2, 3, 99),
    pick(3, 3, 99),
  ]
  const goods = GOODS[pick(4, 0, GOODS.length - 1)]
  const expression = `${stacks} * ${each} + ${loose} - ${sold}`
  const result = evaluate(expression)
  if (!result.ok) throw new Error(`generated expression ${expression}: ${result.message}`)
  const answer = formatRational(result.value)
  const wrong = formatRational({ ...result.value, numerator: result.value.numerator + 10n })
  return {
    id: `sum-${index}`,
    title: `${stacks} stacks of ${each} ${goods}`,
    request:
      `Warehouse count ${index}: there are ${stacks} stacks of ${each} ${goods}, ${loose} more lie loose, ` +
      `and ${sold} were sold today. How many ${goods} are left? Use the calculator and end with the number.`,
    answer,
    limits: { max_turns: 6 },
    transcripts: {
      correct: {
        steps: [
          { call: 'calculator', args: { expression } },
          { say: `There are ${answer} ${goods} left.` },
        ],
        expect: { score: 1 },
      },
      wrong: {
        steps: [
          { call: 'calculator', args: { expression: `${stacks} * ${each} + ${loose}` } },
          { say: `There are ${wrong} ${goods} left.` },
        ],
        expect: { score: 0 },
      },
    },
  }
}
