/**
 * Exporters of traces, by OpenTelemetry's variables:
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */

/** Environment variables, of which an empty one counts as absent. */
export type Environment = Readonly<Record<string, string | undefined>>;

export const EXPORTERS = ['otlp', 'console', 'zipkin', 'none'] as const;

const OTLP_ADDRESSES = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'];

/** Names of the requested exporters; empty where no traces are requested. */
export function requestedExporters(env: Environment): readonly string[] {
  const value = (name: string): string => env[name]?.trim() ?? '';
  const named = value('OTEL_TRACES_EXPORTER')
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
  if (value('OTEL_SDK_DISABLED').toLowerCase() === 'true' || named[0]?.toLowerCase() === 'none') return [];
  return named.length === 0 && OTLP_ADDRESSES.some((name) => value(name) !== '') ? ['otlp'] : named;
}

export function unknownExporters(env: Environment): readonly string[] {
  return requestedExporters(env).filter((one) => !EXPORTERS.some((known) => known === one));
}
