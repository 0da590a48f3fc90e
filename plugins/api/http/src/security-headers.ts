/**
 * The headers that keep a browser from taking an answer for something else, with the values that helmet documents. An answer is data: a route that sends a page
 * sets the policy that the page needs. Headers that matter to pages only are left out.
 */
const EVERY_ANSWER = {
  'Content-Security-Policy': "default-src 'none';frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
} as const

/** One year. Without `includeSubDomains`: other servers of the same host name may not speak TLS. */
const OVER_TLS = { 'Strict-Transport-Security': 'max-age=31536000' } as const

/** The security headers of every answer. */
export const securityHeaders = (isTls: boolean): Readonly<Record<string, string>> =>
  isTls ? { ...EVERY_ANSWER, ...OVER_TLS } : EVERY_ANSWER
