// The inventory service: stock and purchase orders.
import {
  date,
  datetime,
  defineService,
  id,
  int,
  money,
  num,
  oneOf,
  opt,
  type RecordOf,
  ref,
  str,
  text,
} from '../catalogue/declare.ts'
import { done, type Outcome, refuse } from '../kernel/outcome.ts'
import type { Args, Transaction } from '../kernel/transaction.ts'

const productStatus = oneOf('active', 'discontinued', 'backordered')
const purchaseOrderStatus = oneOf('open', 'received', 'cancelled')

export const inventory = defineService({
  name: 'inventory',
  title: 'Stock and purchase orders',
  entities: {
    product: {
      id: 'sku',
      prefix: 'SK',
      fields: {
        sku: id,
        name: str,
        category: str,
        on_hand: int,
        reorder_point: int,
        reorder_qty: int,
        unit_cost: money,
        supplier_id: opt(ref('procurement.vendor')),
        status: productStatus,
        avg_daily_sales: opt(num),
        lead_time_days: opt(int),
      },
      search: ['name', 'sku', 'category'],
    },
    purchase_order: {
      id: 'po_id',
      prefix: 'PO',
      fields: {
        po_id: id,
        sku: ref('inventory.product'),
        quantity: int,
        supplier_id: ref('procurement.vendor'),
        status: purchaseOrderStatus,
        created_at: datetime,
        expected_date: opt(date),
      },
    },
  },
  tools: {
    inventory_list_products: {
      op: 'list',
      entity: 'product',
      params: { category: opt(str), status: opt(productStatus) },
    },
    inventory_search_products: { op: 'search', entity: 'product' },
    inventory_get_product: { op: 'get', entity: 'product' },
    inventory_list_purchase_orders: {
      op: 'list',
      entity: 'purchase_order',
      params: { sku: opt(id), status: opt(purchaseOrderStatus) },
    },
    inventory_create_purchase_order: {
      op: 'custom',
      entity: 'purchase_order',
      params: {
        sku: ref('inventory.product'),
        quantity: int,
        supplier_id: ref('procurement.vendor'),
      },
      write: true,
      errors: ['INVALID_STATE'],
      about:
        'Orders a quantity of a product from a supplier; discontinued products cannot be ordered.',
      handler: createPO,
    },
    inventory_cancel_purchase_order: {
      op: 'set',
      entity: 'purchase_order',
      params: { reason: opt(text) },
      set: { status: 'cancelled' },
      guard: { status: ['open'] },
    },
    inventory_adjust_stock: {
      op: 'custom',
      entity: 'product',
      params: { sku: ref('inventory.product'), delta: int, reason: text },
      write: true,
      about:
        'Adds delta (which may be negative) to the stock of a product; stock never falls below 0.',
      handler: adjustStock,
    },
  },
})

type Product = RecordOf<typeof inventory.entities.product>

function createPO(transaction: Transaction, args: Args): Outcome {
  const [sku, quantity] = [args.sku as string, args.quantity as number]
  if (quantity < 1)
    return refuse('INVALID_ARGUMENT', `quantity: expected 1 or more, got ${quantity}`)
  const product = transaction.find<Product>('inventory.product', sku)
  if (product?.status === 'discontinued')
    return refuse('INVALID_STATE', `${sku} is discontinued and cannot be ordered`)
  return done(transaction.create('inventory.purchase_order', { ...args, status: 'open' }))
}

function adjustStock(transaction: Transaction, args: Args): Outcome {
  const [sku, delta] = [args.sku as string, args.delta as number]
  const { on_hand } = transaction.find<Product>('inventory.product', sku)!
  if (on_hand + delta < 0)
    return refuse('INVALID_ARGUMENT', `delta: expected ${-on_hand} or more, got ${delta}`)
  return done(transaction.change('inventory.product', sku, { on_hand: on_hand + delta }))
}
