import { describe, expect, test } from 'vitest'
import { constantLoss, countedLoss } from './dr-grpo-loss.ts'

// Token sums 2 x 1 and 1 x -1; the third sequence is masked throughout.
const input = {
  advantages: [1, -1, 5],
  response_mask: [
    [1, 1],
    [1, 0],
    [0, 0],
  ],
  token_ratio: [
    [1, 1],
    [1, 1],
    [1, 1],
  ],
}

describe('the loss of a policy gradient', () => {
  test('by a constant is one of four, as the libraries count sequences', () => {
    expect(constantLoss(input, 10)).toEqual({
      oat: expect.closeTo(-1 / 30, 12),
      verl_main: expect.closeTo(-1 / 20, 12),
      'verl_0.8.0.dev': expect.closeTo(-1 / 10, 12),
      trl: expect.closeTo(-1 / 30, 12),
    })
  })

  test('by counted tokens is the mean of means, or the mean over the batch', () => {
    expect(countedLoss(input, 'tokens_in_sample').tokens_in_sample).toBeCloseTo(0, 12)
    expect(countedLoss(input, 'tokens_in_batch').tokens_in_batch).toBeCloseTo(-1 / 3, 12)
  })
})
