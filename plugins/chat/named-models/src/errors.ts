import { svcError } from '@svc/core'

const clip = (text: string) => (text.length > 200 ? `${text.slice(0, 200)}…` : text)

export const keyInvalid = () =>
  svcError('INVALID_VALUE', 'idempotency-key must be 1 to 255 visible characters', { details: { field: 'idempotency-key' } })

export const nameMissing = () =>
  svcError('INVALID_VALUE', 'model must be the name of a model', {
    details: { field: 'model', reason: 'must be the name of a model' },
    hint: 'Use a name of GET /v1/models, for example <provider>/<model>',
  })

export const ambiguous = (name: string, providers: readonly string[]) => {
  const names = providers.map(provider => `${provider}/${clip(name)}`)
  return svcError('INVALID_VALUE', `model "${clip(name)}" exists at several providers: use ${names.join(' or ')}`, {
    details: { field: 'model', reason: 'exists at several providers', value: clip(name), allowed: names },
    hint: `Use one of: ${names.join(', ')}`,
  })
}

export const notFound = (name: string) =>
  svcError('MODEL_NOT_FOUND', `there is no model "${clip(name)}"`, {
    details: { provider: null, model: clip(name), available: [] },
    hint: 'Use a name of GET /v1/models: <provider>/<model>, an alias, or profile:<name>',
  })

/** A field of a request that an agent cannot use. */
export const agentLacks = (field: string, kind: string) =>
  svcError('INVALID_VALUE', `${field} is not supported by a ${kind}`, {
    details: { field, reason: `is not supported by a ${kind}`, unsupported: true },
  })
