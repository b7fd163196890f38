// The 28 services of the office, in the order in which tools are offered.

import { analytics } from '../services/analytics.ts'
import { approvals } from '../services/approvals.ts'
import { assets } from '../services/assets.ts'
import { billing } from '../services/billing.ts'
import { calendar } from '../services/calendar.ts'
import { chat } from '../services/chat.ts'
import { config } from '../services/config.ts'
import { contacts } from '../services/contacts.ts'
import { contracts } from '../services/contracts.ts'
import { crm } from '../services/crm.ts'
import { docs } from '../services/docs.ts'
import { expenses } from '../services/expenses.ts'
import { feeds } from '../services/feeds.ts'
import { finance } from '../services/finance.ts'
import { helpdesk } from '../services/helpdesk.ts'
import { hr } from '../services/hr.ts'
import { inventory } from '../services/inventory.ts'
import { kb } from '../services/kb.ts'
import { mail } from '../services/mail.ts'
import { monitoring } from '../services/monitoring.ts'
import { notes } from '../services/notes.ts'
import { orders } from '../services/orders.ts'
import { procurement } from '../services/procurement.ts'
import { projects } from '../services/projects.ts'
import { scheduler } from '../services/scheduler.ts'
import { todo } from '../services/todo.ts'
import { travel } from '../services/travel.ts'
import { web } from '../services/web.ts'
import type { ServiceDeclaration } from './declare.ts'

export const SERVICES: readonly ServiceDeclaration[] = [
  crm,
  helpdesk,
  mail,
  calendar,
  contacts,
  todo,
  kb,
  finance,
  expenses,
  billing,
  orders,
  inventory,
  procurement,
  scheduler,
  notes,
  docs,
  chat,
  hr,
  projects,
  approvals,
  config,
  monitoring,
  feeds,
  web,
  contracts,
  travel,
  assets,
  analytics,
]
