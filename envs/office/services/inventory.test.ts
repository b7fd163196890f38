// Purchase orders and stock.
import { describe, expect, test } from 'vitest'
import { callAll } from '../transcripts.testkit.ts'

const product = (sku: string, status: string) => ({
  sku,
  name: 'Lamp',
  category: 'light',
  on_hand: 5,
  reorder_point: 3,
  reorder_qty: 10,
  unit_cost: 2.5,
  status,
})
const inventory = {
  initial_state: {
    inventory: { product: [product('SK-1', 'active'), product('SK-2', 'discontinued')] },
    procurement: {
      vendor: [
        { vendor_id: 'VN-1', name: 'v', email: 'v@v.example', bank_account: 'b', status: 'active' },
      ],
    },
  },
}

describe('a purchase order', () => {
  const order = (more: object) =>
    [
      'inventory_create_purchase_order',
      { sku: 'SK-1', quantity: 10, supplier_id: 'VN-1', ...more },
    ] as const

  test('is open from its creation', () => {
    expect(callAll(inventory, order({})).result).toEqual({
      po_id: 'PO-N1',
      sku: 'SK-1',
      quantity: 10,
      supplier_id: 'VN-1',
      status: 'open',
      created_at: '2027-03-10T11:00:01+01:00',
    })
  })
  test.each([
    ['a discontinued product', { sku: 'SK-2' }, 'INVALID_STATE'],
    ['a product that is not there', { sku: 'SK-9' }, 'REF_NOT_FOUND'],
    ['a supplier that is not there', { supplier_id: 'VN-9' }, 'REF_NOT_FOUND'],
    ['nothing', { quantity: 0 }, 'INVALID_ARGUMENT'],
  ])('for %s is refused', (_what, more, code) => {
    expect(callAll(inventory, order(more)).error).toBe(code)
  })
})

describe('stock', () => {
  const adjust = (delta: number) =>
    ['inventory_adjust_stock', { sku: 'SK-1', delta, reason: 'count' }] as const

  test.each([
    [3, 8],
    [-5, 0],
  ])('changes by %i to %i', (delta, on_hand) => {
    expect(callAll(inventory, adjust(delta)).result).toMatchObject({ on_hand })
  })
  test('never falls below 0', () => {
    const { error, state } = callAll(inventory, adjust(-6))
    expect(error).toBe('INVALID_ARGUMENT')
    expect(state.tables['inventory.product']![0]).toMatchObject({ on_hand: 5 })
  })
})
