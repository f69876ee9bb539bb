/**
 * Faults in OpenTelemetry's variables for traces, which its SDK would silently skip
 * (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/,
 * https://opentelemetry.io/docs/specs/otel/protocol/exporter/).
 */
import { accessSync, constants } from 'node:fs';
import { type Kind, oneOf, partsOf } from '../lib/settings.js';
import { type Environment, EXPORTERS, requestedExporters, unknownExporters } from './exporters.js';

const LEVELS = ['none', 'error', 'warn', 'info', 'debug', 'verbose', 'all'];
const PROTOCOLS = ['grpc', 'http/protobuf', 'http/json'];
const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
];
const PROPAGATORS = ['tracecontext', 'baggage', 'b3', 'b3multi', 'jaeger', 'none'];

const listOf =
  (known: readonly string[]): Kind<undefined> =>
  (text, fault) => {
    const unknown = partsOf(text).filter((one) => one !== '' && !known.includes(one));
    if (unknown.length > 0)
      fault(`must be a list of ${known.join(', ')}; ${JSON.stringify(unknown.join())} is none of them`);
  };
const whole: Kind<undefined> = (text, fault) => {
  if (!/^\d{1,9}$/.test(text)) fault(`must be a whole number, not ${JSON.stringify(text)}`);
};
const share: Kind<undefined> = (text, fault) => {
  if (!/^(?:0(?:\.\d+)?|1(?:\.0+)?|\.\d+)$/.test(text))
    fault(`must be a number from 0 to 1, not ${JSON.stringify(text)}`);
};
/** An http or https address. Faults never show the text: it may contain a password. */
const address: Kind<undefined> = (text, fault) => {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    fault('must be an address that begins with http:// or https://');
};
/** A list of `key=value`. Faults never show the text: headers contain keys of providers. */
const pairs: Kind<undefined> = (text, fault) => {
  if (!partsOf(text).every((one) => one === '' || /^[^=\s]+\s*=/.test(one)))
    fault('must be a list of key=value, comma-separated');
};
const readable: Kind<undefined> = (text, fault) => {
  try {
    accessSync(text, constants.R_OK);
  } catch (error) {
    fault(`names ${JSON.stringify(text)}, which can't be read (${(error as NodeJS.ErrnoException).code})`);
  }
};

const forTraces = (name: string, check: Kind<unknown>): [string, Kind<unknown>][] => [
  [`OTEL_EXPORTER_OTLP_${name}`, check],
  [`OTEL_EXPORTER_OTLP_TRACES_${name}`, check],
];

const CHECKS: readonly (readonly [name: string, check: Kind<unknown>])[] = [
  ...forTraces('ENDPOINT', address),
  ...forTraces('PROTOCOL', oneOf(PROTOCOLS)),
  ...forTraces('HEADERS', pairs),
  ...forTraces('TIMEOUT', whole),
  ...forTraces('COMPRESSION', oneOf(['none', 'gzip'])),
  ...forTraces('CERTIFICATE', readable),
  ...forTraces('CLIENT_CERTIFICATE', readable),
  ...forTraces('CLIENT_KEY', readable),
  ...forTraces('INSECURE', oneOf(['true', 'false'])),
  ['OTEL_EXPORTER_ZIPKIN_ENDPOINT', address],
  ['OTEL_TRACES_SAMPLER', oneOf(SAMPLERS)],
  ['OTEL_TRACES_SAMPLER_ARG', share],
  ['OTEL_PROPAGATORS', listOf(PROPAGATORS)],
  ['OTEL_RESOURCE_ATTRIBUTES', pairs],
  ['OTEL_LOG_LEVEL', (text, fault) => oneOf(LEVELS)(text.toLowerCase(), fault)],
  ...[
    'OTEL_BSP_SCHEDULE_DELAY',
    'OTEL_BSP_EXPORT_TIMEOUT',
    'OTEL_BSP_MAX_QUEUE_SIZE',
    'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
    'OTEL_ATTRIBUTE_COUNT_LIMIT',
    'OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT',
    'OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT',
    'OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT',
    'OTEL_SPAN_LINK_COUNT_LIMIT',
    'OTEL_SPAN_EVENT_COUNT_LIMIT',
    'OTEL_SPAN_ATTRIBUTE_PER_LINK_COUNT_LIMIT',
    'OTEL_SPAN_ATTRIBUTE_PER_EVENT_COUNT_LIMIT',
  ].map((name): [string, Kind<unknown>] => [name, whole]),
];

/** Faults of the variables, without secret values; empty where no traces are requested. */
export function telemetryFaults(env: Environment): readonly string[] {
  const disabled = env['OTEL_SDK_DISABLED']?.trim() ?? '';
  if (disabled !== '' && !/^(?:true|false)$/i.test(disabled))
    return [`OTEL_SDK_DISABLED must be true or false, not ${JSON.stringify(disabled)}`];
  if (requestedExporters(env).length === 0) return [];
  const faults: string[] = [];
  const unknown = unknownExporters(env);
  if (unknown.length > 0)
    faults.push(
      `OTEL_TRACES_EXPORTER must be a list of ${EXPORTERS.join(', ')}; ${JSON.stringify(unknown.join())} is none of them`,
    );
  for (const [name, check] of CHECKS) {
    const value = env[name]?.trim() ?? '';
    if (value !== '') check(value, (problem) => faults.push(`${name} ${problem}`));
  }
  return faults;
}
