/**
 * Steps of a request, with their errors. Their order in `pipeline.ts` is part of the contract: each fault hides later
 * ones (docs/api/conventions.md#order-of-checks). 404 and 405 of paths come before, in `server.ts`.
 */
import type { ParsedUrlQuery } from 'node:querystring';
import { Readable } from 'node:stream';
import { clockMs } from '../../lib/clock.js';
import { shortened } from '../../lib/quotedText.js';
import type { ErrorCode } from '../../domain/errors.js';
import { rolesOf } from './principal.js';
import { readBody, readBytes } from './body.js';
import { bodyLimits } from './bodyLimits.js';
import { answerOf, fieldHeader, HttpError } from './errors.js';
import type { Exchange, PipelineDeps } from './exchange.js';
import { firstPiece } from './firstPiece.js';
import { bodyHashOf, idempotencyKey, keyedCommandId, keyRoute, randomCommandId, takeKey } from './idempotency.js';
import { POSITION_HEADER } from './positions.js';
import { listParameter, parseQuery, readQuery, refuseUnknownParameters } from './query.js';
import type { RequestState } from './requestState.js';
import { replay, reportFault } from './respond.js';
import { type Route, type RouteDescription, type Schema, bodyOf, isLimited, takesKeys } from './route.js';
import { bodyValidator, dropNulls, queryValidator } from './validation.js';

export interface Step {
  readonly name: string;
  /** Errors that the step may raise for a route. Absent: only the errors of every step. */
  readonly errors?: (route: RouteDescription) => readonly ErrorCode[];
  /** The step's work for this route; `undefined`: none. Made once, before the first request. */
  readonly of: (route: Route, deps: PipelineDeps) => StepAction | undefined;
}

/**
 * Work of a step for one request, which stores its results in the exchange. @throws HttpError, Refusal,
 * UnavailableError
 */
export type StepAction = (exchange: Exchange) => Promise<void> | void;

const writes = ({ method, path }: RouteDescription): boolean => method !== 'GET' && takesKeys(path);

/**
 * Whether auditors are refused: they write nothing but records of their own reading
 * (docs/api/tokens.md#staff-accounts).
 */
const auditorsMayNot = (route: RouteDescription): boolean =>
  writes(route) && route.caller !== 'none' && route.roles === undefined;

export const authenticate: Step = {
  name: 'authenticate',
  errors: ({ caller }) => {
    if (caller === 'none') return [];
    const faults = ['authentication_failed', 'too_many_requests'] as const;
    return caller === 'user' ? [...faults, 'forbidden'] : faults;
  },
  of:
    ({ caller }, deps) =>
    (exchange) => {
      const state = exchange.ctx.state as RequestState;
      const { authorization } = exchange.ctx.req.headers;
      const known = deps.recognise(authorization, caller);
      if (known !== undefined) {
        exchange.principal = state.principal = known;
        return undefined;
      }
      return deps.authenticate(authorization, caller).then(
        (found) => {
          exchange.principal = state.principal = found;
        },
        (error: unknown) => {
          if (answerOf(error).status === 401) deps.limits?.takeRequest(exchange);
          throw error;
        },
      );
    },
};

export const authorise: Step = {
  name: 'authorise',
  errors: (route) => (route.roles !== undefined || auditorsMayNot(route) ? ['forbidden'] : []),
  of: (route) => {
    const { roles } = route;
    if (roles !== undefined)
      return ({ principal }) => {
        if (!rolesOf(principal).some((role) => roles.includes(role))) throw new HttpError('forbidden');
      };
    if (!auditorsMayNot(route)) return undefined;
    return ({ principal }) => {
      if (principal.kind === 'user' && principal.user.roles.includes('auditor')) throw new HttpError('forbidden');
    };
  },
};

export const limit: Step = {
  name: 'limit',
  errors: (route) => (isLimited(route) || route.giftParam !== undefined ? ['too_many_requests'] : []),
  of: (route, { limits }) => {
    if (limits === undefined) return undefined;
    const counts = isLimited(route);
    const guesses = route.giftParam !== undefined;
    if (!counts && !guesses) return undefined;
    // Requests of the API's callers must not use up the limit of support: docs/api/limits.md#what-counts.
    const take = route.path.startsWith('/ops/') ? limits.takeOpsRequest : limits.takeRequest;
    return (exchange) => {
      if (counts) take(exchange);
      if (guesses) limits.refuseGuesser(exchange);
    };
  },
};

export const readKey: Step = {
  name: 'idempotency key',
  errors: (route) => (writes(route) ? ['invalid_idempotency_key'] : []),
  of: (route) =>
    writes(route)
      ? (exchange) => {
          exchange.key = idempotencyKey(exchange.header('idempotency-key'));
        }
      : undefined,
};

export const readPosition: Step = {
  name: 'position',
  errors: ({ path }) => (takesKeys(path) ? ['invalid_position'] : []),
  of: ({ path }, { positions }) =>
    takesKeys(path)
      ? (exchange) => {
          exchange.position = positions.parse(exchange.header('gift-position'));
        }
      : undefined,
};

/** Path parameters that may hold a gift's shortcode. Under `/ops` it is resolved before the access is recorded. */
const NAMES_A_GIFT = /:(giftId|parkedId)(?=\/|$)/;

export const resolveParameters: Step = {
  name: 'parameters',
  of: ({ giftParam, path }, { shortcodes }) => {
    const name = giftParam ?? NAMES_A_GIFT.exec(path)?.[1];
    if (name === undefined) return undefined;
    return (exchange) => {
      const identifier = exchange.params[name] ?? '';
      const id = shortcodes.giftIdOf(identifier) ?? identifier;
      if (id === identifier) return;
      exchange.params = { ...exchange.params, [name]: id };
      exchange.byShortcode = true;
    };
  },
};

/** Field names of an object schema, or of all its alternatives. */
const fieldsOf = ({ properties, oneOf }: Schema): readonly string[] => [
  ...Object.keys((properties ?? {}) as Readonly<Record<string, Schema>>),
  ...((oneOf ?? []) as readonly Schema[]).flatMap(fieldsOf),
];

export const parseBody: Step = {
  name: 'body',
  errors: (route) => {
    if (route.signature !== undefined) return ['unsupported_content_type', 'request_too_large'];
    return bodyOf(route) === undefined
      ? []
      : ['unsupported_content_type', 'request_too_large', 'malformed_json', 'schema'];
  },
  of: (route) => {
    const body = bodyOf(route);
    if (body === undefined) return undefined;
    const isForm = route.formBody === true;
    const limits = bodyLimits(route, body);
    if (route.signature !== undefined)
      return async (exchange) => {
        exchange.bytes = await readBytes(exchange.ctx, limits.bytes);
      };
    const rules = {
      limits,
      optional: route.bodyOptional === true || route.body === undefined,
      formFields: isForm ? fieldsOf(body) : undefined,
      coded: !isForm,
    };
    return async (exchange) => {
      exchange.sent = await readBody(exchange.ctx, rules);
      // Nulls are dropped before the body is compared with that of an earlier request.
      dropNulls(body, exchange.sent);
    };
  },
};

export const waitForPosition: Step = {
  name: 'wait',
  of: ({ path, reads, giftParam, readsSingly = giftParam !== undefined }, { positions }) =>
    takesKeys(path)
      ? ({ position }) => (position === undefined ? undefined : positions.wait(position, reads, readsSingly))
      : undefined,
};

/** With a key: repeats the stored answer, or claims the key. */
export const replayOrClaim: Step = {
  name: 'replay or claim',
  errors: (route) => (writes(route) ? ['request_in_progress', 'idempotency_key_reused'] : []),
  of: (route, deps) => {
    if (!writes(route)) return undefined;
    return (exchange) => {
      if (exchange.key !== undefined) return claim(route, deps, exchange, exchange.key);
      exchange.commandId = randomCommandId();
      return undefined;
    };
  },
};

async function claim(route: Route, deps: PipelineDeps, exchange: Exchange, key: string): Promise<void> {
  const { hash, records, keys, positions } = deps;
  // The hash is keyed: a plain hash in the log would reveal whether a guessed phone number is the receiver's.
  exchange.bodyHash = hash('body', bodyHashOf(exchange.sent === undefined ? {} : exchange.sent));
  exchange.commandId = keyedCommandId(hash, exchange.principal, keyRoute(route, exchange.params), key);
  const taken = await takeKey(records, exchange.commandId, exchange.bodyHash, clockMs, keys);
  if ('settle' in taken) {
    exchange.held = taken;
    exchange.repeats = taken.repeats;
    const firstPosition = positions.stored(taken.first?.headers[POSITION_HEADER]);
    if (firstPosition !== undefined) exchange.firstPosition = firstPosition;
    return;
  }
  if (taken.accessRecord !== undefined) await route.recordAgain?.(exchange, taken.accessRecord, exchange.sent);
  replay(exchange.ctx, positions, taken);
  exchange.replayed = true;
}

/** Refuses an unknown entity, or a caller without access. */
export const openEntity: Step = {
  name: 'open entity',
  errors: ({ giftParam }) => (giftParam === undefined ? [] : ['gift_not_found']),
  of: ({ open, giftParam }, { limits }) =>
    open === undefined
      ? undefined
      : (exchange) =>
          open(exchange).then((handler) => {
            exchange.handler = handler;
            if (giftParam !== undefined) limits?.refuseGuesser(exchange);
          }),
};

const NO_PARAMETERS: ParsedUrlQuery = Object.freeze({});

/**
 * Relations that `embed[]` may name: none under `/api/v2` where a route embeds nothing. `undefined`: the parameter has
 * no meaning for the route.
 */
const relationsOf = ({ embeds, path }: RouteDescription): readonly string[] | undefined =>
  embeds ?? (path.startsWith('/api/v2/') ? [] : undefined);

/** Validates the body, then the query, then embedded relations. */
export const validate: Step = {
  name: 'validate',
  errors: (route) => [
    ...(route.query === undefined && route.knownParametersOnly !== true ? [] : (['schema'] as const)),
    ...(relationsOf(route) === undefined ? [] : (['unknown_embed'] as const)),
  ],
  of: (route) => {
    const { query, embeds } = route;
    const body = bodyOf(route);
    const checksBody = body !== undefined && route.signature === undefined && route.bodyCheckedByHandler !== true;
    const checkBody = checksBody ? bodyValidator(body) : undefined;
    const checkQuery = query === undefined ? undefined : queryValidator(query);
    const relations = relationsOf(route);
    return (exchange) => {
      const { sent } = exchange;
      checkBody?.(sent === undefined ? {} : sent);
      const parameters = exchange.rawQuery === '' ? NO_PARAMETERS : parseQuery(exchange.rawQuery);
      if (route.knownParametersOnly === true) refuseUnknownParameters(parameters, query, embeds !== undefined);
      if (query !== undefined) {
        const values = readQuery(parameters, query);
        checkQuery?.(values);
        exchange.query = values;
      }
      if (relations !== undefined)
        exchange.embeds = requestedRelations(relations, parameters, embeds === undefined ? undefined : sent);
      if (sent !== undefined) exchange.body = sent as Exchange['body'];
    };
  },
};

/** The requested relations, with each step of a dotted relation. @throws HttpError `unknown_embed` */
function requestedRelations(known: readonly string[], parameters: ParsedUrlQuery, body: unknown): readonly string[] {
  const inBody = (body as { embed?: readonly string[] } | undefined)?.embed ?? [];
  const inQuery = parameters === NO_PARAMETERS ? [] : listParameter(parameters, 'embed');
  if (inBody.length + inQuery.length === 0) return [];
  const paths = new Set<string>();
  for (const requested of [inQuery, inBody])
    for (const [index, relation] of requested.entries()) {
      if (!known.includes(relation))
        throw new HttpError('unknown_embed', {
          message: `Unknown embed: ${shortened(relation)}.`,
          headers: fieldHeader(`embed[${index}]`),
        });
      const steps = relation.split('.');
      for (let length = 1; length <= steps.length; length++) paths.add(steps.slice(0, length).join('.'));
    }
  return [...paths];
}

/** Refuses outward work while it is held, after all other checks, so that faults of the request are answered first. */
export const refuseHeld: Step = {
  name: 'refuseHeld',
  errors: ({ outward }) => (outward === true ? ['outward_work_held'] : []),
  of: ({ outward }, { outwardHeld }) =>
    outward === undefined || outwardHeld === undefined
      ? undefined
      : () => {
          if (outwardHeld()) throw new HttpError('outward_work_held');
        },
};

export const handle: Step = {
  name: 'handle',
  of:
    ({ handle: always }) =>
    async (exchange) => {
      const handler = always ?? exchange.handler;
      if (handler === undefined) throw new Error('a route has neither a handler nor one that its entity gives');
      const answer = await handler(exchange);
      // An error before the first piece of a stream still gets its status.
      if (answer.body instanceof Readable && exchange.ctx.method !== 'HEAD')
        await firstPiece(answer.body, exchange.ctx.res, reportFault(exchange.ctx));
      exchange.answer = answer;
    },
};
