/**
 * Which exporters of traces the environment names
 * (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/).
 */

/** OpenTelemetry's variables, as any other setting: empty counts as absent. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What `OTEL_TRACES_EXPORTER` may list: what the SDK has, and nothing. */
export const EXPORTERS = ['otlp', 'console', 'zipkin', 'none'] as const;

const OTLP_ADDRESSES = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'];

/** The exporters that are asked for by name or address, in the order given; none where no traces are wanted. */
export function exportersWanted(env: Environment): readonly string[] {
  const value = (name: string): string => env[name]?.trim() ?? '';
  const named = value('OTEL_TRACES_EXPORTER')
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
  if (value('OTEL_SDK_DISABLED').toLowerCase() === 'true' || named[0]?.toLowerCase() === 'none') return [];
  return named.length === 0 && OTLP_ADDRESSES.some((name) => value(name) !== '') ? ['otlp'] : named;
}

/** Those of them that the SDK does not know: it would send nothing by them, and say so only in passing. */
export function unknownExporters(env: Environment): readonly string[] {
  return exportersWanted(env).filter((one) => !EXPORTERS.some((known) => known === one));
}
