import type { InputRequest } from '@svc/core/contracts'

/** What a server may ask for, in the protocol's words. */
const CAPABILITIES: Readonly<Record<InputRequest['method'], object>> = {
  'elicitation/create': { elicitation: { form: {}, url: {} } },
  'sampling/createMessage': { sampling: {} },
  'roots/list': { roots: {} },
}

export const capabilitiesOf = (can: readonly InputRequest['method'][]): Record<string, object> =>
  Object.assign({}, ...can.map(method => CAPABILITIES[method]))

export const isInputMethod = (method: unknown): method is InputRequest['method'] =>
  typeof method === 'string' && Object.hasOwn(CAPABILITIES, method)

/** What a server is answered whose question nobody can be asked, or nobody answers. */
export function noAnswer(method: InputRequest['method']): { readonly result: object } | { readonly error: object } {
  if (method === 'elicitation/create') return { result: { action: 'cancel' } }
  if (method === 'roots/list') return { result: { roots: [] } }
  return { error: { code: -1, message: 'nobody can be asked' } }
}
