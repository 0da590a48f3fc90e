import type { IncomingMessage, ServerResponse } from 'node:http'
import helmet from 'helmet'

/**
 * The headers that keep a browser from taking an answer for what it is not, as helmet would set them: asked once, for they are the same for every answer. An
 * answer is data, no page: a route that sends a page brings the policy that it needs. Name, value, name, value.
 */
export function securityHeaders(isSecure: boolean): readonly string[] {
  const set: string[] = []
  const response = {
    setHeader: (name: string, value: string) => void set.push(name, value),
    removeHeader: () => {},
  }
  helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    // other servers of the same host name are not ours to speak for
    strictTransportSecurity: isSecure && { includeSubDomains: false },
    xFrameOptions: { action: 'deny' },
    crossOriginOpenerPolicy: false,
    originAgentCluster: false,
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xPermittedCrossDomainPolicies: false,
    xXssProtection: false,
  })({} as IncomingMessage, response as unknown as ServerResponse, () => {})
  return set
}
