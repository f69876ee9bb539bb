/**
 * Ajv's options for this program's own schemas. Otherwise Ajv would compile the meta-schema first, and block the event
 * loop for tens of milliseconds. Strict mode finds faults in these schemas, and tests check the public ones against the
 * meta-schema.
 */
export const OWN_SCHEMAS = { meta: false, validateSchema: false } as const;
