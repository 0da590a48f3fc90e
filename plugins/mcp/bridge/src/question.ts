import { isTree, type SvcError } from '@svc/core'
import type { InputRequest, Json, ToolStep } from '@svc/core/contracts'
import { callFailed } from '@svc/mcp-protocol'

type Input = Extract<ToolStep, { readonly type: 'input' }>
type Params = NonNullable<InputRequest['params']>

/**
 * Makes the question of a tool server safe to show: it begins with the name of the server, so that it does not look like a question of svc. Throws MCP_CALL_FAILED
 * for a form that asks for a credential, which the protocol forbids, and for a page that is not https.
 */
export function questionOf(server: string, step: Input): Input {
  const requests = Object.entries(step.requests).map(([key, one]) => [key, shown(server, one)] as const)
  return { ...step, requests: Object.fromEntries(requests) }
}

function shown(server: string, { method, params = {} }: InputRequest): InputRequest {
  if (method !== 'elicitation/create') return { method, ...(Object.keys(params).length > 0 && { params }) }
  if (params['mode'] === 'url') checkPage(server, params['url'])
  else checkForm(server, params)
  const said = typeof params['message'] === 'string' ? params['message'].slice(0, LONGEST) : ''
  return { method, params: { ...params, message: `The tool server "${server}" asks: ${said}` } }
}

const LONGEST = 2_000
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

function checkPage(server: string, written: Json | undefined): void {
  const url = typeof written === 'string' ? URL.parse(written) : null
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && LOOPBACK.test(url.hostname))
  if (url === null || !isSafe || url.username !== '' || url.password !== '')
    throw refused(server, 'it sends a person to a page that is not https')
}

/** Field names that ask for a credential. */
const CREDENTIAL =
  /pass(word|phrase|code|wd)|\bpwd\b|secret|api[\s_-]?key|(access|auth|bearer|refresh|session)[\s_-]?token|\btoken\b|private[\s_-]?key|credential|(credit|debit)[\s_-]?card|card[\s_-]?number|\bcv[vc]2?\b|\bpin\b|one[\s_-]?time|\botp\b|\b2fa\b|\bssn\b|social[\s_-]?security|(recovery|seed|backup)[\s_-]?(code|phrase)/i

function checkForm(server: string, params: Params): void {
  const schema = params['requestedSchema']
  const properties = isTree(schema) && isTree(schema['properties']) ? schema['properties'] : {}
  for (const [name, field] of Object.entries(properties)) {
    const { title, format, type } = (isTree(field) ? field : {}) as { title?: unknown; format?: unknown; type?: unknown }
    const words = [name.replace(/([a-z\d])([A-Z])/g, '$1 $2').replaceAll('_', ' '), typeof title === 'string' ? title : '']
    const isText = type === undefined || type === 'string' || type === 'number' || type === 'integer'
    if (isText && (format === 'password' || words.some(one => CREDENTIAL.test(one))))
      throw refused(server, `it asks a person for a credential ("${name.slice(0, 100)}") in a form, which the protocol forbids`)
  }
}

const refused = (server: string, what: string): SvcError => callFailed(server, 'protocol_error', what, { delivered: 'yes' })
