// Wrong tokens of one address and connections of one token: what is let through, what is not, and when it is again.
import { EventEmitter } from 'node:events'
import { describe, expect, test } from 'vitest'
import { createTokenLimits } from './token-limits.ts'

const RIGHT = 0
const TOO_MANY = expect.objectContaining({ code: 'too_many_requests' })

/** What a call came to: its error's code, or nothing. */
function refused(call: () => void): string | undefined {
  try {
    call()
    return undefined
  } catch (error) {
    return (error as { code: string }).code
  }
}

describe('wrong tokens', () => {
  const open = () => {
    let ms = 0
    const limits = createTokenLimits(1, () => ms)
    const wrong = (address = 'a') => refused(() => limits.guess(address, null))
    const right = (address = 'a') => refused(() => limits.guess(address, RIGHT))
    return { limits, wrong, right, pass: (seconds: number) => (ms += seconds * 1000) }
  }

  test('after twenty of an address a right one tells no more than a wrong one', () => {
    const { wrong, right } = open()
    for (let count = 0; count < 20; count++) expect(wrong()).toBe(undefined)
    expect([wrong(), right()]).toEqual(['too_many_requests', 'too_many_requests'])
  })

  test('a token that was right there before passes, and so do other addresses', () => {
    const { wrong, right } = open()
    expect(right()).toBe(undefined)
    for (let count = 0; count < 100; count++) wrong()
    expect([right(), right('b'), wrong('b')]).toEqual([undefined, undefined, undefined])
  })

  test('one is forgotten every three seconds, and those that are refused count for nothing', () => {
    const { wrong, pass } = open()
    for (let count = 0; count < 100; count++) wrong()
    pass(2.9)
    expect(wrong()).toBe('too_many_requests')
    pass(0.2)
    expect([wrong(), wrong()]).toEqual([undefined, 'too_many_requests'])
  })

  test('the limits remember a bounded number of addresses, those heard of last', () => {
    const { wrong, right } = open()
    expect(right('kept')).toBe(undefined)
    for (let count = 0; count < 20; count++) wrong('old')
    expect(wrong('old')).toBe('too_many_requests')
    for (let count = 0; count < 10_000; count++) {
      wrong(`address ${count}`)
      if (count % 1000 === 0) right('kept')
    }
    for (let count = 0; count < 20; count++) wrong('kept')
    expect(wrong('old')).toBe(undefined)
    expect(right('kept')).toBe(undefined)
  })
})

test('a token has so many connections, each counted once until it closes; others have their own', () => {
  const limits = createTokenLimits(2)
  const peer = () => Object.assign(new EventEmitter(), { remoteAddress: 'a' })
  const [one, two, three] = [peer(), peer(), peer()]
  for (const held of [one, two, one, two]) limits.hold(held, 0)
  expect(() => limits.hold(three, 0)).toThrow(TOO_MANY)
  limits.hold(three, 1)
  one.emit('close')
  limits.hold(three, 0)
  expect(() => limits.hold(one, 0)).toThrow(TOO_MANY)
})
