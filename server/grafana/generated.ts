// Every file that is written from the catalogue of metrics and from this folder, by its path in the repository.
import { metricsDocument } from '../metrics/document.ts'
import { createDashboard } from './dashboard.ts'
import {
  alertFile,
  alertmanagerFile,
  prometheusFile,
  recordingFile,
  yamlFile,
} from './rule-files.ts'
import { ruleTests } from './rule-tests.ts'
import { WINDOWS } from './rules.ts'

/** The files' texts; the same for the same sources. */
export function generatedFiles(): Record<string, string> {
  return {
    'docs/metrics.md': metricsDocument(),
    'deploy/docker-compose.yml': yamlFile(COMPOSE),
    'deploy/prometheus/prometheus.yml': prometheusFile({
      address: '127.0.0.1:8420',
      interval: '15s',
      alertmanager: '127.0.0.1:9093',
    }),
    'deploy/prometheus/recording.rules.yml': recordingFile(WINDOWS),
    'deploy/prometheus/alerts.rules.yml': alertFile(WINDOWS),
    'deploy/prometheus/rules_test.yml': yamlFile(ruleTests()),
    'deploy/prometheus/alertmanager.yml': alertmanagerFile(),
    'deploy/grafana/dashboards/dashboard.json': `${JSON.stringify(createDashboard(), null, 2)}\n`,
    'deploy/grafana/provisioning/dashboards/paddock.yml': yamlFile(DASHBOARDS),
    'deploy/grafana/provisioning/datasources/paddock.yml': yamlFile(DATASOURCES),
  }
}

/** On the host's network: Paddock binds loopback, and so do these. */
const COMPOSE = {
  services: {
    prometheus: {
      image: 'prom/prometheus:v2.53.0',
      network_mode: 'host',
      command: [
        '--config.file=/etc/prometheus/prometheus.yml',
        '--storage.tsdb.path=/prometheus',
        '--web.listen-address=127.0.0.1:9090',
        // Exemplars lead from a bucket to an episode.
        '--enable-feature=exemplar-storage',
      ],
      volumes: ['./prometheus:/etc/prometheus:ro', 'prometheus:/prometheus'],
    },
    alertmanager: {
      image: 'prom/alertmanager:v0.27.0',
      network_mode: 'host',
      command: [
        '--config.file=/etc/alertmanager/alertmanager.yml',
        '--web.listen-address=127.0.0.1:9093',
        '--cluster.listen-address=',
      ],
      volumes: ['./prometheus:/etc/alertmanager:ro'],
    },
    grafana: {
      image: 'grafana/grafana:11.1.0',
      network_mode: 'host',
      environment: {
        GF_SERVER_HTTP_ADDR: '127.0.0.1',
        GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH: '/var/lib/grafana/dashboards/dashboard.json',
      },
      volumes: [
        './grafana/provisioning:/etc/grafana/provisioning:ro',
        './grafana/dashboards:/var/lib/grafana/dashboards:ro',
      ],
    },
  },
  volumes: { prometheus: null },
}

const DASHBOARDS = {
  apiVersion: 1,
  providers: [{ name: 'paddock', type: 'file', options: { path: '/var/lib/grafana/dashboards' } }],
}

const DATASOURCES = {
  apiVersion: 1,
  datasources: [
    {
      name: 'Prometheus',
      uid: 'paddock-prometheus',
      type: 'prometheus',
      access: 'proxy',
      url: 'http://127.0.0.1:9090',
      isDefault: true,
      jsonData: {
        timeInterval: '15s',
        exemplarTraceIdDestinations: [
          // Grafana puts the id in; two dollars since provisioning reads one as a variable of the environment.
          { name: 'episode_id', url: 'http://127.0.0.1:8420/episodes/$${__value.raw}' },
        ],
      },
    },
  ],
}
