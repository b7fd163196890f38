// The assets service: IT assets.
import { date, defineService, id, oneOf, opt, ref, str, text } from '../catalogue/declare.ts'

const kind = oneOf('laptop', 'phone', 'monitor', 'badge', 'other')
const status = oneOf('in_stock', 'assigned', 'repair', 'retired')

export const assets = defineService({
  name: 'assets',
  title: 'IT assets',
  entities: {
    asset: {
      id: 'asset_id',
      prefix: 'AS',
      fields: {
        asset_id: id,
        kind,
        model: str,
        serial: str,
        status,
        assigned_to: opt(ref('hr.employee')),
        warranty_until: opt(date),
      },
    },
  },
  tools: {
    assets_list: {
      op: 'list',
      entity: 'asset',
      params: { kind: opt(kind), status: opt(status), assigned_to: opt(id), model: opt(str) },
    },
    assets_get: { op: 'get', entity: 'asset' },
    assets_assign: {
      op: 'set',
      entity: 'asset',
      params: { employee_id: ref('hr.employee') },
      set: { status: 'assigned', assigned_to: '@employee_id' },
      guard: { status: ['in_stock'] },
    },
    assets_return: {
      op: 'set',
      entity: 'asset',
      set: { status: 'in_stock', assigned_to: null },
      guard: { status: ['assigned', 'repair'] },
    },
    assets_retire: {
      op: 'set',
      entity: 'asset',
      params: { reason: text },
      set: { status: 'retired' },
    },
  },
})
