// The monitoring service: alerts, incidents, on-call.
import {
  datetime,
  defineService,
  id,
  list,
  oneOf,
  opt,
  ref,
  str,
  text,
} from '../catalogue/declare.ts'

const alertSeverity = oneOf('info', 'warning', 'critical')
const alertStatus = oneOf('firing', 'acked', 'resolved')
const incidentSeverity = oneOf('sev1', 'sev2', 'sev3', 'sev4')
const incidentStatus = oneOf('open', 'mitigated', 'closed')

export const monitoring = defineService({
  name: 'monitoring',
  title: 'Alerts, incidents, on-call',
  entities: {
    alert: {
      id: 'alert_id',
      prefix: 'AL',
      fields: {
        alert_id: id,
        service: str,
        severity: alertSeverity,
        message: text,
        status: alertStatus,
        started_at: datetime,
        ack_note: opt(text),
      },
      sort: ['started_at', 'desc'],
    },
    incident: {
      id: 'incident_id',
      prefix: 'IC',
      fields: {
        incident_id: id,
        title: str,
        severity: incidentSeverity,
        status: incidentStatus,
        alert_ids: list(id),
        commander_id: opt(ref('contacts.person')),
        note: opt(text),
        created_at: datetime,
      },
    },
    rota: {
      id: 'rota_id',
      prefix: 'RO',
      fields: {
        rota_id: id,
        team: str,
        person_id: ref('contacts.person'),
        from: datetime,
        to: datetime,
      },
    },
  },
  tools: {
    monitoring_list_alerts: {
      op: 'list',
      entity: 'alert',
      params: { status: opt(alertStatus), severity: opt(alertSeverity), service: opt(str) },
    },
    monitoring_get_alert: { op: 'get', entity: 'alert' },
    monitoring_ack_alert: {
      op: 'set',
      entity: 'alert',
      params: { note: opt(text) },
      set: { status: 'acked', ack_note: '@note' },
      guard: { status: ['firing'] },
    },
    monitoring_open_incident: {
      op: 'create',
      entity: 'incident',
      params: {
        title: str,
        severity: incidentSeverity,
        alert_ids: list(id),
        commander_id: opt(ref('contacts.person')),
      },
      defaults: { status: 'open' },
    },
    monitoring_update_incident: {
      op: 'update',
      entity: 'incident',
      params: { status: opt(incidentStatus), note: opt(text) },
    },
    monitoring_oncall: {
      op: 'list',
      entity: 'rota',
      params: { team: opt(str) },
    },
  },
})
