import type { CommandContext } from '../../commands/transact.js';
import type { Caller } from '../../ports/eventStore.js';
import type { UserDocument } from '../../projections/accounts.js';
import { HttpError } from './errors.js';
import { type Principal, rolesOf } from './principal.js';
import type { EarlyCall } from './route.js';

/**
 * @param now ISO 8601, UTC, milliseconds
 * @param commandId to be given by a route that takes no idempotency keys: with one id, all its commands would be one
 */
export function commandContext(call: EarlyCall, now: string, commandId = call.commandId): CommandContext {
  return {
    commandId,
    ...(call.bodyHash === undefined ? {} : { bodyHash: call.bodyHash }),
    correlationId: call.requestId,
    requestId: call.requestId,
    by: callerOf(call.principal),
    now,
  };
}

function callerOf(principal: Principal): Caller {
  switch (principal.kind) {
    case 'anonymous':
      return {};
    case 'client':
      return { client: principal.clientId };
    case 'user': {
      const { clientId: client, user } = principal;
      return { user: user.id, client, roles: [...rolesOf(principal), ...user.permissions] };
    }
    default:
      return principal satisfies never;
  }
}

/** The id of a client that calls with its own token. @throws HttpError forbidden for a user */
export function clientOf({ principal }: Pick<EarlyCall, 'principal'>): string {
  if (principal.kind !== 'client') throw new HttpError('forbidden');
  return principal.clientId;
}

/** @throws HttpError forbidden for a client */
export function userOf({ principal }: Pick<EarlyCall, 'principal'>): UserDocument {
  if (principal.kind !== 'user') throw new HttpError('forbidden');
  return principal.user;
}

/** @throws HttpError forbidden for a client */
export function contextOf(call: EarlyCall, now: string, commandId = call.commandId): CommandContext {
  userOf(call);
  return commandContext(call, now, commandId);
}
