// The registry that follows from the declarations is the published catalogue, tool by tool and field by field.
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { ENTITIES, TOOLS } from './registry.ts'
import { SERVICES } from './services.ts'

interface PublishedEntity {
  id: string
  prefix: string
  fields: Record<string, string>
  summary: string[] | null
  search: string[] | null
  sort: [string, string]
}
interface PublishedTool {
  name: string
  op: string
  entity: string
  write: boolean
  parameters: unknown
  errors: string[]
  handler?: string
  filters?: unknown
  defaults?: unknown
  set?: unknown
  guard?: unknown
  append?: unknown
}
type Published = Record<
  string,
  { title: string; entities: Record<string, PublishedEntity>; tools: PublishedTool[] }
>

const file = new URL('../testdata/services.json', import.meta.url)
const published: Published = JSON.parse(readFileSync(file, 'utf8')).services

const publishedEntities = Object.entries(published).flatMap(([service, { entities }]) =>
  Object.entries(entities).map(([key, entity]) => ({ name: `${service}.${key}`, entity })),
)
const publishedTools = Object.entries(published).flatMap(([service, { tools }]) =>
  tools.map((tool) => ({ service, name: tool.name, tool })),
)

/** Of a declaration what services.json writes of a field: `enum(a|b)?`, `list<str>`, `ref(crm.customer)`. */
function notation(field: { t: string; opt?: true; [more: string]: unknown }): string {
  const forms: Record<string, string> = {
    enum: `enum(${(field.values as string[])?.join('|')})`,
    list: `list<${field.of}>`,
    ref: `ref(${field.to})`,
  }
  return (forms[field.t] ?? field.t) + (field.opt ? '?' : '')
}

test('there are the 28 services with their titles, in the published order', () => {
  const ours = SERVICES.map(({ name, title }) => [name, title])
  expect(ours).toEqual(Object.entries(published).map(([name, { title }]) => [name, title]))
})

test('there are 55 entities and 163 tools, and no others than those published', () => {
  expect([...ENTITIES.keys()]).toEqual(publishedEntities.map(({ name }) => name))
  expect([...TOOLS.keys()]).toEqual(publishedTools.map(({ name }) => name))
  expect([ENTITIES.size, TOOLS.size]).toEqual([55, 163])
})

test.each(publishedEntities)(
  '$name has the published fields, list view, search fields and order',
  ({ name, entity }) => {
    const ours = ENTITIES.get(name)!
    expect([...ours.fields].map(([field, type]) => [field, notation(type)])).toEqual(
      Object.entries(entity.fields),
    )
    expect(ours).toMatchObject({
      id: entity.id,
      prefix: entity.prefix,
      summary: entity.summary,
      search: entity.search ?? [],
      sort: entity.sort,
    })
  },
)

test.each(publishedTools)(
  '$name has the published parameters, effect and errors',
  ({ service, name, tool }) => {
    const ours = TOOLS.get(name)!
    const { op, filters, defaults, set, guard, append, handler } = {
      filters: undefined,
      defaults: undefined,
      set: undefined,
      guard: undefined,
      append: undefined,
      handler: undefined,
      ...ours.declaration,
    }
    expect(JSON.stringify(ours.definition.function.parameters)).toBe(
      JSON.stringify(tool.parameters),
    )
    expect({
      service: ours.service,
      entity: ours.entity.key,
      write: ours.write,
      errors: ours.errors,
      handler: (handler as { name: string } | undefined)?.name,
      ...{ op, filters, defaults, set, guard, append },
    }).toEqual({
      service,
      entity: tool.entity,
      write: tool.write,
      errors: tool.errors,
      handler: tool.handler,
      op: tool.op,
      filters: tool.filters,
      defaults: tool.defaults,
      set: tool.set,
      guard: tool.guard,
      append: tool.append,
    })
  },
)

/** The references of SPEC section c.3, where they are not the one that names the record itself. */
const REFERENCES = {
  crm_update_customer: { owner_contact_id: 'contacts.person' },
  crm_merge_customers: { primary_id: 'crm.customer', duplicate_id: 'crm.customer' },
  crm_log_interaction: { customer_id: 'crm.customer' },
  helpdesk_create_ticket: { customer_id: 'crm.customer' },
  helpdesk_update_ticket: { assignee_id: 'contacts.person' },
  helpdesk_escalate_ticket: { assignee_id: 'contacts.person' },
  helpdesk_add_comment: { ticket_id: 'helpdesk.ticket' },
  mail_send: { in_reply_to: 'mail.message' },
  mail_save_draft: { in_reply_to: 'mail.message' },
  mail_label_message: { message_id: 'mail.message' },
  contacts_send_message: { person_id: 'contacts.person' },
  finance_create_payment: { vendor_id: 'procurement.vendor' },
  expenses_create_report: { employee_id: 'hr.employee' },
  billing_issue_refund: { invoice_id: 'billing.invoice' },
  billing_add_credit: { customer_id: 'crm.customer' },
  orders_create_return: { order_id: 'orders.order' },
  inventory_create_purchase_order: { sku: 'inventory.product', supplier_id: 'procurement.vendor' },
  inventory_adjust_stock: { sku: 'inventory.product' },
  procurement_open_verification: { vendor_id: 'procurement.vendor' },
  procurement_create_request: { vendor_id: 'procurement.vendor' },
  scheduler_job_history: { job_id: 'scheduler.job' },
  scheduler_run_job: { job_id: 'scheduler.job' },
  docs_share: { file_id: 'docs.file' },
  chat_read_channel: { channel_id: 'chat.channel' },
  chat_post: { channel_id: 'chat.channel', thread_of: 'chat.post' },
  hr_update_employee: { manager_id: 'hr.employee' },
  hr_request_leave: { employee_id: 'hr.employee' },
  projects_create_task: { project_id: 'projects.project' },
  projects_comment_task: { task_id: 'projects.task' },
  config_rotate_key: { integration_id: 'config.integration' },
  monitoring_open_incident: { commander_id: 'contacts.person' },
  contracts_send_notice: { contract_id: 'contracts.contract' },
  travel_book: { option_id: 'travel.option', employee_id: 'hr.employee' },
  assets_assign: { employee_id: 'hr.employee' },
}

describe('references', () => {
  test('exactly the parameters of section c.3 refer to records', () => {
    const ours = [...TOOLS.values()].flatMap(({ name, params }) => {
      const refs = [...params].flatMap(([key, field]) =>
        field.t === 'ref' ? [[key, field.to]] : [],
      )
      return refs.length > 0 ? [[name, Object.fromEntries(refs)]] : []
    })
    expect(Object.fromEntries(ours)).toEqual(REFERENCES)
  })
})

test('every required field of a created record comes from a parameter, a default or the clock', () => {
  for (const { name, entity, declaration } of TOOLS.values()) {
    if (declaration.op !== 'create') continue
    const given = new Set([entity.id, 'created_at', ...Object.keys(declaration.defaults ?? {})])
    for (const [key, field] of Object.entries(declaration.params)) if (!field.opt) given.add(key)
    for (const [field, type] of entity.fields)
      if (!type.opt) expect(given, `${name}: ${field}`).toContain(field)
  }
})
