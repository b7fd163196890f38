// The hr service: employees and leave.
import {
  date,
  defineService,
  email,
  id,
  num,
  oneOf,
  opt,
  ref,
  str,
  text,
} from '../catalogue/declare.ts'

const employeeStatus = oneOf('active', 'onboarding', 'leave', 'left')
const kind = oneOf('annual', 'sick', 'unpaid')
const leaveStatus = oneOf('pending', 'approved', 'rejected')

export const hr = defineService({
  name: 'hr',
  title: 'Employees and leave',
  entities: {
    employee: {
      id: 'employee_id',
      prefix: 'EM',
      fields: {
        employee_id: id,
        name: str,
        email,
        department: str,
        title: str,
        manager_id: opt(ref('hr.employee')),
        location: opt(str),
        start_date: date,
        status: employeeStatus,
        leave_balance: opt(num),
      },
      summary: ['employee_id', 'name', 'department', 'title', 'location', 'status'],
      search: ['name', 'email', 'department', 'title', 'location'],
    },
    leave: {
      id: 'leave_id',
      prefix: 'LV',
      fields: {
        leave_id: id,
        employee_id: ref('hr.employee'),
        kind,
        start: date,
        end: date,
        days: num,
        status: leaveStatus,
        note: opt(text),
      },
    },
  },
  tools: {
    hr_search_employees: {
      op: 'search',
      entity: 'employee',
      params: { department: opt(str) },
    },
    hr_get_employee: { op: 'get', entity: 'employee' },
    hr_update_employee: {
      op: 'update',
      entity: 'employee',
      params: {
        title: opt(str),
        department: opt(str),
        manager_id: opt(ref('hr.employee')),
        location: opt(str),
        status: opt(employeeStatus),
      },
    },
    hr_list_leave: {
      op: 'list',
      entity: 'leave',
      params: { employee_id: opt(id), status: opt(leaveStatus) },
    },
    hr_request_leave: {
      op: 'create',
      entity: 'leave',
      params: { employee_id: ref('hr.employee'), kind, start: date, end: date, days: num },
      defaults: { status: 'pending' },
    },
    hr_decide_leave: {
      op: 'set',
      entity: 'leave',
      params: { decision: oneOf('approved', 'rejected'), note: opt(text) },
      set: { status: '@decision', note: '@note' },
      guard: { status: ['pending'] },
    },
  },
})
