// The orders service: sales orders and returns.
import {
  date,
  datetime,
  defineService,
  id,
  list,
  money,
  obj,
  oneOf,
  opt,
  ref,
  str,
  text,
} from '../catalogue/declare.ts'

const orderStatus = oneOf('placed', 'paid', 'shipped', 'delivered', 'cancelled', 'returned')

export const orders = defineService({
  name: 'orders',
  title: 'Sales orders and returns',
  entities: {
    order: {
      id: 'order_id',
      prefix: 'OR',
      fields: {
        order_id: id,
        customer_id: ref('crm.customer'),
        status: orderStatus,
        items: list(obj),
        total: money,
        currency: str,
        placed_at: date,
        delivered_at: opt(date),
        cancel_reason: opt(text),
      },
      summary: ['order_id', 'customer_id', 'status', 'total', 'placed_at', 'delivered_at'],
    },
    return: {
      id: 'return_id',
      prefix: 'RT',
      fields: {
        return_id: id,
        order_id: ref('orders.order'),
        reason: text,
        status: oneOf('requested', 'received', 'rejected'),
        created_at: datetime,
      },
    },
  },
  tools: {
    orders_list: {
      op: 'list',
      entity: 'order',
      params: { customer_id: opt(id), status: opt(orderStatus) },
    },
    orders_get: { op: 'get', entity: 'order' },
    orders_update_status: {
      op: 'set',
      entity: 'order',
      params: { status: oneOf('placed', 'paid', 'shipped', 'delivered', 'returned') },
      set: { status: '@status' },
    },
    orders_cancel: {
      op: 'set',
      entity: 'order',
      params: { reason: text },
      set: { status: 'cancelled', cancel_reason: '@reason' },
      guard: { status: ['placed', 'paid'] },
    },
    orders_create_return: {
      op: 'create',
      entity: 'return',
      params: { order_id: ref('orders.order'), reason: text },
      defaults: { status: 'requested' },
    },
  },
})
