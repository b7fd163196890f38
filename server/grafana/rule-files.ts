// The rules as Prometheus reads them, and what Prometheus and Alertmanager are started with.
import { stringify } from 'yaml'
import { alertRules, recordingRules, type Windows } from './rules.ts'

const GENERATED = '# Written by `pnpm grafana`; edit server/grafana/ instead.\n'

export function yamlFile(value: unknown): string {
  return GENERATED + stringify(value, { lineWidth: 0 })
}

export function recordingFile(windows: Windows): string {
  return yamlFile({ groups: [{ name: 'paddock-recording', rules: recordingRules(windows) }] })
}

export function alertFile(windows: Windows): string {
  return yamlFile({ groups: [{ name: 'paddock-alerts', rules: alertRules(windows) }] })
}

export interface PrometheusTarget {
  /** `host:port` of a Paddock server. */
  address: string
  interval: string
  /** Of Alertmanager; null for none. */
  alertmanager: string | null
}

/** The guards turn a server that went mad into `up == 0` instead of a full disk (OPS 1.5). */
export function prometheusFile({ address, interval, alertmanager }: PrometheusTarget): string {
  return yamlFile({
    global: { scrape_interval: interval, evaluation_interval: interval },
    rule_files: ['recording.rules.yml', 'alerts.rules.yml'],
    ...(alertmanager && {
      alerting: { alertmanagers: [{ static_configs: [{ targets: [alertmanager] }] }] },
    }),
    scrape_configs: [
      {
        job_name: 'paddock',
        sample_limit: 20_000,
        label_limit: 20,
        label_value_length_limit: 128,
        body_size_limit: '16MB',
        static_configs: [{ targets: [address] }],
      },
    ],
  })
}

/** One cause is one page: while the first fires, what follows from it is silent. */
export const INHIBITIONS: [source: string, targets: string[]][] = [
  ['RewardContractBroken', ['NoValidGroups', 'BudgetWasted', 'AdmissionPaused']],
  [
    'SamplingParamMismatch',
    ['RewardContractBroken', 'NoValidGroups', 'BudgetWasted', 'AdmissionPaused'],
  ],
  ['AdmissionPaused', ['NoValidGroups', 'BudgetWasted']],
  [
    'BackendDown',
    ['InfraFailuresHigh', 'RetryBudgetSpent', 'NoValidGroups', 'BudgetWasted', 'AdmissionPaused'],
  ],
]

export function alertmanagerFile(): string {
  const silent = [
    ...INHIBITIONS.map(([source, targets]) => ({
      source_matchers: [`alertname = ${source}`],
      target_matchers: [`alertname =~ "${targets.join('|')}"`],
    })),
    {
      source_matchers: ['alertname = RolloutServerDown'],
      target_matchers: ['alertname != RolloutServerDown'],
    },
  ]
  return yamlFile({
    route: { receiver: 'ops', group_by: ['alertname', 'env', 'backend'], group_wait: '10s' },
    inhibit_rules: silent,
    // Where alerts go is for those who run it to say: a webhook, mail or pager stands here.
    receivers: [{ name: 'ops' }],
  })
}
