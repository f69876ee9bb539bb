/**
 * What of a description a program could rely on, and a later one takes away (docs/api/changes.md#with-notice). The
 * comparisons of the npm registry read no OpenAPI 3.1, are kept no more, or fetch a program when they are installed.
 */
type Json = Readonly<Record<string, unknown>>;
type Direction = 'request' | 'answer';

/** Lists of values that may grow in answers (docs/api/changes.md#without-notice). */
export type OpenLists = readonly (readonly string[])[];

const METHODS = ['get', 'post', 'patch', 'delete'];
const object = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {});
const list = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : value === undefined ? [] : [value];
const text = (value: unknown): string => JSON.stringify(value);

/** Each break in a phrase that begins with its operation: empty where every program of before still works. */
export function breaksOf(before: object, after: object, open: OpenLists): string[] {
  const found = new Set<string>();
  const note = (where: string, what: string): void => void found.add(`${where}: ${what}`);
  const resolve = (document: object, value: unknown): Json => {
    const { $ref } = object(value);
    if (typeof $ref !== 'string') return object(value);
    return resolve(
      document,
      $ref
        .slice(2)
        .split('/')
        .reduce<unknown>((at, step) => object(at)[step], document),
    );
  };
  /** Pairs of schemas that were compared: a break is noted once, and schemas may contain themselves. */
  const compared = new Set<string>();

  function schemas(direction: Direction, where: string, was: unknown, is: unknown): void {
    const [had, has] = [object(was)['$ref'], object(is)['$ref']];
    const pair = text([direction, had, has]);
    if (had !== undefined && has !== undefined && compared.has(pair)) return;
    compared.add(pair);
    const old = resolve(before, was);
    const now = resolve(after, is);
    const sent = direction === 'request';
    const [lesser, larger] = sent ? [old, now] : [now, old];
    const types = list(larger['type']);
    if (
      types.length > 0 &&
      !list(lesser['type']).every((type) => types.includes(type) || (type === 'integer' && types.includes('number')))
    )
      note(where, `the type ${text(old['type'])} is ${text(now['type'])}`);
    values(sent, where, old, now);
    bounds(sent, where, old, now);
    const fields = object(old['properties']);
    const required = list(now['required']);
    for (const [name, field] of Object.entries(fields)) {
      const present = object(now['properties'])[name];
      if (present === undefined) note(`${where}.${name}`, sent ? 'is taken no more' : 'is gone');
      else schemas(direction, `${where}.${name}`, field, present);
      if (!sent && present !== undefined && list(old['required']).includes(name) && !required.includes(name))
        note(`${where}.${name}`, 'may be absent');
    }
    if (sent)
      for (const name of required)
        if (!list(old['required']).includes(name)) note(`${where}.${String(name)}`, 'is required');
    if (old['items'] !== undefined && now['items'] !== undefined)
      schemas(direction, `${where}[]`, old['items'], now['items']);
    for (const kind of ['oneOf', 'anyOf', 'allOf']) alternatives(direction, where, list(old[kind]), list(now[kind]));
  }

  function values(sent: boolean, where: string, old: Json, now: Json): void {
    const valuesOf = ({ enum: several, const: one }: Json): readonly unknown[] => list(several ?? one);
    const [had, has] = [valuesOf(old), valuesOf(now)];
    if (sent && has.length > 0) {
      const gone = had.length === 0 ? ['others'] : had.filter((value) => !has.includes(value));
      if (gone.length > 0) note(where, `takes no ${gone.map(String).join(', ')}`);
    }
    if (sent || had.length === 0) return;
    const isOpen = open.some((values) => had.every((value) => values.includes(String(value))));
    const added = has.length === 0 ? ['others'] : has.filter((value) => !had.includes(value));
    if (added.length > 0 && !isOpen) note(where, `may be ${added.map(String).join(', ')}`);
  }

  /** A narrower bound of what is sent. */
  function bounds(sent: boolean, where: string, old: Json, now: Json): void {
    if (!sent) return;
    for (const most of ['maxLength', 'maximum', 'maxItems'])
      if (Number(now[most] ?? Infinity) < Number(old[most] ?? Infinity)) note(where, `${most} is ${String(now[most])}`);
    for (const least of ['minLength', 'minimum', 'minItems'])
      if (Number(now[least] ?? -Infinity) > Number(old[least] ?? -Infinity))
        note(where, `${least} is ${String(now[least])}`);
    if (now['pattern'] !== undefined && now['pattern'] !== old['pattern'])
      note(where, `the pattern is ${text(now['pattern'])}`);
  }

  function alternatives(direction: Direction, where: string, old: readonly unknown[], now: readonly unknown[]): void {
    const nameOf = (one: unknown, index: number): string => text(object(one)['$ref'] ?? object(one)['title'] ?? index);
    const named = (all: readonly unknown[]): Map<string, unknown> =>
      new Map(all.map((one, at) => [nameOf(one, at), one]));
    const [had, has] = [named(old), named(now)];
    for (const [name, one] of had)
      if (has.has(name)) schemas(direction, where, one, has.get(name));
      else if (direction === 'request') note(where, `takes no ${name}`);
    if (direction === 'answer' && had.size > 0)
      for (const name of has.keys()) if (!had.has(name)) note(where, `may be ${name}`);
  }

  const contents = (direction: Direction, where: string, was: Json, is: Json): void => {
    for (const [type, { schema }] of Object.entries(object(was['content']) as Record<string, Json>)) {
      const now = object(is['content'])[type];
      if (now === undefined) note(where, `has no ${type}`);
      else schemas(direction, where, schema, object(now)['schema']);
    }
  };

  function operation(where: string, was: Json, is: Json): void {
    const parametersOf = (document: object, { parameters }: Json): Map<string, Json> =>
      new Map(
        list(parameters).map((one) => {
          const parameter = resolve(document, one);
          // The names of parameters in a path are nobody's affair.
          const name = parameter['in'] === 'path' ? '' : String(parameter['name']);
          return [`${String(parameter['in'])} ${name}`.trim(), parameter] as const;
        }),
      );
    const [had, has] = [parametersOf(before, was), parametersOf(after, is)];
    for (const [name, parameter] of had) {
      const now = has.get(name);
      if (now === undefined) note(`${where} ${name}`, 'is gone');
      else schemas('request', `${where} ${name}`, parameter['schema'], now['schema']);
    }
    for (const [name, { required }] of has)
      if (required === true && had.get(name)?.['required'] !== true) note(`${where} ${name}`, 'is required');
    const [body, present] = [resolve(before, was['requestBody']), resolve(after, is['requestBody'])];
    contents('request', `${where} body`, body, present);
    if (present['required'] === true && body['required'] !== true) note(`${where} body`, 'is required');
    for (const [status, answer] of Object.entries(object(was['responses']))) {
      if (!status.startsWith('2')) continue;
      const old = resolve(before, answer);
      const now = object(is['responses'])[status];
      if (now === undefined) {
        note(`${where} ${status}`, 'is answered no more');
        continue;
      }
      contents('answer', `${where} ${status}`, old, resolve(after, now));
      for (const header of Object.keys(object(old['headers'])))
        if (object(resolve(after, now)['headers'])[header] === undefined)
          note(`${where} ${status} ${header}`, 'is gone');
    }
  }

  const shape = (path: string): string => path.replaceAll(/\{\w+\}/g, '{}');
  const paths = (document: object): Map<string, Json> =>
    new Map(Object.entries(object(object(document)['paths'])).map(([path, item]) => [shape(path), object(item)]));
  const present = paths(after);
  for (const [path, item] of paths(before))
    for (const method of METHODS) {
      if (item[method] === undefined) continue;
      const where = `${method.toUpperCase()} ${path}`;
      const now = present.get(path)?.[method];
      if (now === undefined) note(where, 'is gone');
      else operation(where, object(item[method]), object(now));
    }
  for (const [name, hook] of Object.entries(object(object(before)['webhooks']))) {
    const now = object(object(object(after)['webhooks'])[name])['post'];
    const where = `webhook ${name}`;
    if (now === undefined) note(where, 'is gone');
    else
      contents(
        'answer',
        where,
        object(object(object(hook)['post'])['requestBody']),
        object(object(now)['requestBody']),
      );
  }
  return [...found];
}
