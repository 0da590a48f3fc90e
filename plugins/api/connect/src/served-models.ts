import { codeOf } from '@svc/core'
import type { ServerClient } from '@svc/core/contracts'
import type { ServedModel } from './clients.ts'
import { endpointMissing, modelRequired, modelUnknown } from './errors.ts'

interface ModelWire {
  readonly id: string
  readonly owned_by?: string
  readonly context_length?: number
  readonly max_tokens?: number
}

interface ProfilesWire {
  readonly active?: string
  readonly profiles?: readonly { readonly name: string; readonly provider: string | null; readonly model: string | null }[]
}

/** The model of this name, or the default model of the server. Throws MODEL_UNKNOWN, MODEL_REQUIRED, ENDPOINT_MISSING. */
export async function chooseModel(server: ServerClient, name: string | undefined): Promise<ServedModel> {
  const listed = await listModels(server)
  const found = name === undefined ? await defaultModel(server, listed) : await namedModel(server, name, listed)
  // such a name would reach files and terminals
  if (/\p{Cc}/u.test(found.id)) throw modelUnknown(JSON.stringify(found.id), [], server.url)
  const { id, context_length: context, max_tokens: output } = found
  const isListed = listed.some(one => one.id === id)
  return { id, isListed, ...(context === undefined ? {} : { context }), ...(output === undefined ? {} : { output }) }
}

async function listModels(server: ServerClient): Promise<readonly ModelWire[]> {
  try {
    const { data } = await server.request<{ readonly data?: unknown }>('GET', '/v1/models')
    return Array.isArray(data) ? (data as ModelWire[]).filter(one => typeof one?.id === 'string') : []
  } catch (error) {
    if (codeOf(error) === 'HTTP_404' || codeOf(error) === 'NOT_FOUND')
      throw endpointMissing('/v1/models', 'svc connect', server.url)
    throw error
  }
}

/** A provider can have models that it does not list. */
async function namedModel(server: ServerClient, name: string, listed: readonly ModelWire[]): Promise<ModelWire> {
  const one = listed.find(({ id }) => id === name)
  if (one) return one
  const names = listed.map(({ id }) => id)
  if (name === '') throw modelUnknown(name, names, server.url)
  try {
    const found = await server.request<ModelWire>('GET', `/v1/models/${encodeURIComponent(name)}`)
    return { ...found, id: name }
  } catch (error) {
    if (['HTTP_400', 'HTTP_404', 'MODEL_NOT_FOUND'].includes(codeOf(error) ?? '')) throw modelUnknown(name, names, server.url)
    throw error
  }
}

/** The model of the active profile; as in a chat, a profile without one uses the first model of its provider, or of the first. */
async function defaultModel(server: ServerClient, listed: readonly ModelWire[]): Promise<ModelWire> {
  const { provider, model } = await activeProfile(server)
  const models = listed.filter(({ owned_by: owner = '' }) => !owner.startsWith('svc:'))
  const exact = models.find(({ id }) => provider && model && id === `${provider}/${model}`)
  const found = exact ?? models.find(({ owned_by: owner }) => provider && owner === provider) ?? models[0]
  if (!found) throw modelRequired(server.url)
  return found
}

async function activeProfile(server: ServerClient): Promise<{ provider?: string | null; model?: string | null }> {
  try {
    const { active, profiles = [] } = await server.request<ProfilesWire>('GET', '/api/v1/profiles')
    return profiles.find(({ name }) => name === active) ?? {}
  } catch (error) {
    // a credential for models need not read profiles, and not every server has them
    if (['FORBIDDEN', 'HTTP_403', 'HTTP_404', 'NOT_FOUND'].includes(codeOf(error) ?? '')) return {}
    throw error
  }
}
