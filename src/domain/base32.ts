/**
 * The 32 letters and digits that codes for people are spelled with (Crockford's): none is easily taken for another. A
 * character is 5 bits.
 */
export const BASE32 = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
