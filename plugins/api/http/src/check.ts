import { asSvcError, type SvcError } from '@svc/core'
import { createAddresses } from './address.ts'
import { readCertificate } from './certificate.ts'
import type { ServerConfig } from './config.ts'
import { refuseLentCredentials } from './cors.ts'

/** All that is wrong with what the configuration names, before anything is opened. */
export async function serverProblems({ trusted_proxies, cors, ssl }: ServerConfig): Promise<readonly SvcError[]> {
  const looks = [
    ...trusted_proxies.map(proxy => () => createAddresses([proxy])),
    () => refuseLentCredentials(cors),
    () => (ssl.enabled ? readCertificate(ssl) : undefined),
  ]
  const found = await Promise.all(looks.map(problemOf))
  return found.filter(one => one !== undefined)
}

async function problemOf(look: () => unknown): Promise<SvcError | undefined> {
  try {
    await look()
    return undefined
  } catch (error) {
    return asSvcError(error, 'CONFIG_INVALID')
  }
}
