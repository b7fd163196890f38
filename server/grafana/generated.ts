// Every file that is written from the catalogue of metrics, by its path in the repository.
import { metricsDocument } from '../metrics/document.ts'

/** The files' texts; the same for the same sources. */
export function generatedFiles(): Record<string, string> {
  return { 'docs/metrics.md': metricsDocument() }
}
