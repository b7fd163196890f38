// Rotating a key: deterministic, and told by its last four characters only.
import { expect, test } from 'vitest'
import { begin, callAll, playStep, smallSpec } from '../transcripts.testkit.ts'

const integration = (n: number) => ({
  integration_id: `IG-${n}`,
  name: 'Maps',
  provider: 'atlas',
  status: 'expired',
  api_key: 'key_old',
})
const config = { initial_state: { config: { integration: [integration(1), integration(2)] } } }
const rotate = (integration_id: string) => ['config_rotate_key', { integration_id }] as const
const keyOf = (seed: number, id: string, callsBefore = 0) => {
  let playing = begin(smallSpec(config), seed)
  for (let i = 0; i < callsBefore; i++)
    playing = playStep(playing, { call: 'config_list_integrations', args: {} })
  const { state } = playStep(playing, { call: 'config_rotate_key', args: { integration_id: id } })
  const row = state.tables['config.integration']!.find(
    ({ integration_id }) => integration_id === id,
  )
  return String(row!.api_key)
}

test('replaces the key and shows the last four characters of the new one', () => {
  const { result, state } = callAll(config, rotate('IG-1'))
  const [rotated, other] = state.tables['config.integration']!
  expect(rotated!.api_key).toMatch(/^rk_[0-9a-f]{32}$/)
  expect(result).toEqual({ integration_id: 'IG-1', key_last4: String(rotated!.api_key).slice(-4) })
  expect({ ...rotated, api_key: 'key_old' }).toEqual(integration(1))
  expect(other).toEqual(integration(2))
})

test('the key follows from seed, id and number of the call, and from each of them', () => {
  expect(keyOf(1, 'IG-1')).toBe(keyOf(1, 'IG-1'))
  const keys = [keyOf(1, 'IG-1'), keyOf(2, 'IG-1'), keyOf(1, 'IG-2'), keyOf(1, 'IG-1', 1)]
  expect(new Set(keys).size).toBe(4)
})

test('an integration that is not there is refused', () => {
  expect(callAll(config, rotate('IG-9')).error).toBe('REF_NOT_FOUND')
})
