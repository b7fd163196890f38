// The golden vectors beside the tests: numbers that the reference libraries gave, and how near an answer must come.
import { readFileSync } from 'node:fs'
import { expect } from 'vitest'

export interface Vector {
  name: string
  kind: string
  estimator: string
  settings: Record<string, unknown>
  input: Record<string, unknown>
  expected: Record<string, unknown>
  tolerance: Tolerance
  expected_f64?: Record<string, unknown>
  tolerance_f64?: Tolerance
}

type Tolerance = { abs: number; rel: number } | { exact: true }

const FILES = ['grpo', 'dr_grpo', 'gdpo', 'gigpo', 'variants']

/** All 97, in the order of the files. */
export function goldenVectors(): Vector[] {
  return FILES.flatMap((file) => {
    const url = new URL(`./testdata/${file}.json`, import.meta.url)
    return (JSON.parse(readFileSync(url, 'utf8')) as { cases: Vector[] }).cases
  })
}

/** Every key that the vector expects stands in the answer, number by number within the vector's own tolerance. */
export function expectVector(answer: object, vector: Vector): void {
  const f64 = vector.expected_f64 !== undefined
  const expected = vector.expected_f64 ?? vector.expected
  const tolerance = (f64 ? vector.tolerance_f64 : undefined) ?? vector.tolerance
  for (const [key, value] of Object.entries(expected))
    expectNear((answer as Record<string, unknown>)[key], value, tolerance, `${vector.name}.${key}`)
}

function expectNear(actual: unknown, expected: unknown, tolerance: Tolerance, path: string): void {
  if (typeof expected === 'number' && 'abs' in tolerance) {
    expect(actual, path).toBeTypeOf('number')
    const distance = Math.abs((actual as number) - expected)
    expect(distance, path).toBeLessThanOrEqual(tolerance.abs + tolerance.rel * Math.abs(expected))
    return
  }
  if (typeof expected !== 'object' || expected === null) {
    expect(actual, path).toBe(expected)
    return
  }
  expect(actual, path).toBeTypeOf('object')
  const members = actual as Record<string, unknown>
  expect(Object.keys(members), path).toEqual(Object.keys(expected))
  for (const [key, value] of Object.entries(expected))
    expectNear(members[key], value, tolerance, `${path}.${key}`)
}
