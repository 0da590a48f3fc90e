/** A host as a manifest declares it: `api.example.com`, `db.internal:5432`, `*.example.com`, `*`, `[::1]:80`. */
export interface DeclaredHost {
  readonly host: string
  /** Absent: every port. */
  readonly port?: number
}

/** Parses a declared host, or the `host:port` of a request. */
export function parseHost(text: string): DeclaredHost {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]*))(?::(\d{1,5}))?$/.exec(text) ?? []
  const host = (bracketed ?? plain ?? text).toLowerCase().replace(/\.$/, '')
  return { host, ...(port === undefined ? {} : { port: Number(port) }) }
}

/** The declared hosts that include a host and, if given, a port. `*` stands for every host. */
export const declaredFor = (declared: readonly DeclaredHost[], host: string, port?: number): DeclaredHost[] =>
  declared.filter(
    declaredHost =>
      (port === undefined || declaredHost.port === undefined || declaredHost.port === port) &&
      includesHost(declaredHost.host, host)
  )

function includesHost(declared: string, host: string): boolean {
  if (declared === '*') return true
  return declared.startsWith('*.') ? host.endsWith(declared.slice(1)) && host.length >= declared.length : declared === host
}
