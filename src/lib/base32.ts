/** Crockford's alphabet for codes that people read: no two characters look alike. A character is 5 bits. */
export const BASE32 = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
