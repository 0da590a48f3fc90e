import { Validator } from '@seriousme/openapi-schema-validator'
import { definePlugin, type JsonSchema } from '@svc/core'
import { type AuthScheme, AuthSchemes, Routes } from '@svc/core/contracts'
import { expect } from 'chai'
import { item } from '@svc/testing'
import { serveRest } from './support/rest-server.ts'

interface Operation {
  operationId: string
  requestBody?: { content: Record<string, { schema: { required: string[]; properties: object } }> }
  parameters?: { name: string; in: string }[]
  responses: Record<string, { $ref?: string; content?: object }>
  security?: Record<string, string[]>[]
}
interface Document {
  openapi: string
  info: { version: string }
  paths: Record<string, Record<string, Operation>>
  components: {
    schemas: { Error: { properties: { error_code: { enum: string[] } } } }
    responses: Record<string, { description: string }>
    securitySchemes: Record<string, object>
  }
}

const scheme: AuthScheme = { headers: ['x-key'], challenge: 'Key', authenticate: async () => undefined }
const SCHEMES = [
  item(AuthSchemes, 'key', { ...scheme, shown: { type: 'apiKey', in: 'header', name: 'X-Key', description: 'The key.' } }),
  item(AuthSchemes, 'acme/card-2', { ...scheme, shown: { type: 'http', scheme: 'acme' } }),
  item(AuthSchemes, 'untold', scheme),
]
const WHEN = 'Required if `server.auth.enabled` is true.'

interface Streams {
  paths: Record<string, Record<string, { responses: Record<string, { content: Record<string, { schema: object }> }> }>>
  components: {
    schemas: Record<string, { oneOf?: { $ref: string }[]; properties?: Record<string, { const: string }> }>
  }
}

const documentOf = async (call: Awaited<ReturnType<typeof serveRest>>['call']) =>
  (await call('GET', '/openapi.json')).body as unknown as Document

describe('GET /openapi.json', () => {
  it('describes each route with the schemas that check it', async () => {
    await using served = await serveRest()
    const { openapi, info, paths } = await documentOf(served.call)
    expect([openapi, info.version]).to.deep.equal(['3.1.0', '1.2.3'])
    const chat = paths['/api/v1/chat']!.post!
    expect(chat.requestBody!.content['application/json']!.schema.required).to.deep.equal(['message'])
    expect(chat.requestBody!.content['application/json']!.schema.properties).to.have.keys([
      'message',
      'provider',
      'model',
      'temperature',
      'max_tokens',
      'conversation_id',
      'tools',
      'profile',
      'mode',
      'system',
      'response_schema',
      'parts',
      'tool_budget',
      'token_budget',
      'cost_budget',
    ])
    expect(paths['/api/v1/conversations/{id}']!.get!.parameters).to.deep.include({
      name: 'id',
      in: 'path',
      required: true,
      schema: { type: 'string' },
    })
    expect(paths['/api/v1/conversations']!.get!.parameters!.map(parameter => parameter.name)).to.deep.equal([
      'limit',
      'cursor',
      'q',
      'label',
      'detail',
    ])
    expect(JSON.stringify(paths)).not.to.include('patternHint')
  })

  it('lists all routes of the plugin', async () => {
    await using served = await serveRest()
    const { paths } = await documentOf(served.call)
    const routes = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map(method => `${method.toUpperCase()} ${path}`)
    )
    expect(routes).to.deep.equal([
      'POST /api/v1/chat',
      'POST /api/v1/chat/answer',
      'POST /api/v1/chat/stream',
      'GET /api/v1/chat/stream/{turn_id}',
      'POST /api/v1/chat/stream/{turn_id}/cancel',
      'GET /api/v1/config/effective',
      'GET /api/v1/conversations',
      'POST /api/v1/conversations',
      'GET /api/v1/conversations/{id}',
      'PATCH /api/v1/conversations/{id}',
      'DELETE /api/v1/conversations/{id}',
      'GET /api/v1/conversations/{id}/export',
      'POST /api/v1/conversations/{id}/fork',
      'POST /api/v1/conversations/{id}/hand-over',
      'POST /api/v1/conversations/delete',
      'POST /api/v1/conversations/import',
      'GET /api/v1/doctor',
      'GET /api/v1/me',
      'POST /api/v1/mode/switch',
      'POST /api/v1/model/switch',
      'GET /api/v1/modes',
      'POST /api/v1/profile/switch',
      'GET /api/v1/profiles',
      'GET /api/v1/providers',
      'GET /api/v1/status',
      'GET /api/v1/tools',
      'GET /health',
      'GET /health/live',
      'GET /health/ready',
      'GET /openapi.json',
    ])
  })

  it('lists the error codes, and has no broken references', async () => {
    await using served = await serveRest()
    const document = await documentOf(served.call)
    expect(document.components.schemas.Error.properties.error_code.enum).to.include.members([
      'MISSING_FIELD',
      'INVALID_VALUE',
      'PROVIDER_ERROR',
      'RATE_LIMITED',
    ])
    const refs = [...JSON.stringify(document).matchAll(/"#\/components\/(\w+)\/(\w+)"/g)]
    expect(refs).not.to.have.lengthOf(0)
    for (const [, kind, name] of refs) expect(document.components).to.have.nested.property(`${kind}.${name}`)
  })

  it('says which credential each operation takes, with the scope of its route', async () => {
    await using served = await serveRest({ more: SCHEMES })
    const { paths, components } = await documentOf(served.call)
    expect(components.securitySchemes).to.deep.equal({
      'acme_card-2': { type: 'http', scheme: 'acme', description: WHEN },
      key: { type: 'apiKey', in: 'header', name: 'X-Key', description: `The key. ${WHEN}` },
    })
    const asks = (scope: string) => [{ 'acme_card-2': [scope] }, { key: [scope] }]
    expect(paths['/api/v1/chat']!.post!.security).to.deep.equal(asks('chat'))
    expect(paths['/api/v1/mode/switch']!.post!.security).to.deep.equal(asks('admin'))
    expect(paths['/api/v1/status']!.get!.security).to.deep.equal(asks('read'))
    expect(paths['/health']!.get!.security).to.deep.equal([])
  })

  it('names a scheme of one scope at the routes of that scope alone', async () => {
    const route = {
      method: 'GET' as const,
      path: '/tooling',
      summary: 'Tools',
      scope: 'tools' as const,
      handle: async () => ({}),
    }
    const guard = { ...scheme, guards: 'tools' as const, always: true, shown: { type: 'http' as const, scheme: 'bearer' } }
    await using served = await serveRest({
      more: [...SCHEMES, item(Routes, 'tooling', route), item(AuthSchemes, 'guard', guard)],
    })
    const { paths, components } = await documentOf(served.call)
    const names = (path: string) => paths[path]!.get!.security!.flatMap(entry => Object.keys(entry))
    expect(names('/tooling')).to.deep.equal(['acme_card-2', 'guard', 'key'])
    expect(names('/api/v1/status')).to.deep.equal(['acme_card-2', 'key'])
    expect(components.securitySchemes.guard).to.deep.equal({ type: 'http', scheme: 'bearer' })
  })

  it('includes schemes that are added later', async () => {
    let add = () => {}
    const later = definePlugin({
      setup(scope) {
        add = () => void scope.add(AuthSchemes, 'later', { ...scheme, shown: { type: 'http', scheme: 'later' } })
      },
    })
    await using served = await serveRest({ more: [{ name: 'later', use: later }] })
    expect((await documentOf(served.call)).components.securitySchemes).to.deep.equal({})
    add()
    expect((await documentOf(served.call)).components.securitySchemes).to.have.keys(['later'])
  })

  it('is valid by the schema of OpenAPI 3.1 itself', async () => {
    await using served = await serveRest({ more: SCHEMES })
    const { valid, errors } = await new Validator().validate((await served.call('GET', '/openapi.json')).text)
    expect(errors ?? []).to.deep.equal([])
    expect(valid).to.equal(true)
  })

  it('gives each event of the chat stream a schema of its own', async () => {
    await using served = await serveRest()
    const { paths, components } = (await served.call('GET', '/openapi.json')).body as unknown as Streams
    const { schema } = paths['/api/v1/chat/stream']!.post!.responses['200']!.content['text/event-stream']!
    expect(schema).to.deep.equal({ $ref: '#/components/schemas/ChatEvent' })
    const names = components.schemas.ChatEvent!.oneOf!.map(entry => entry.$ref.split('/').at(-1)!)
    const types = names.map(name => components.schemas[name]!.properties!.type!.const)
    expect(types).to.deep.equal(['start', 'token', 'tool_call', 'ask', 'tool_result', 'error', 'end'])
  })

  it('describes the events of a route that answers with JSON or with a stream', async () => {
    await using served = await serveRest()
    const { paths } = (await served.call('GET', '/openapi.json')).body as unknown as Streams
    const { content } = paths['/api/v1/doctor']!.get!.responses['200']!
    expect(content['application/json']!.schema).to.have.nested.property('properties.findings.items.$ref')
    expect(content['text/event-stream']!.schema).to.have.nested.property('oneOf[0].$ref', '#/components/schemas/Finding')
    expect(content['text/event-stream']!.schema).to.have.nested.property('oneOf[1].properties.findings.type', 'integer')
  })

  it('keeps two schemas apart that want the same name', async () => {
    const answers = (schema: JsonSchema) => ({ '200': { description: 'One.', schema: { title: 'Same', ...Object(schema) } } })
    const routes = definePlugin({
      setup(scope) {
        const add = (path: string, schema: JsonSchema) =>
          scope.add(Routes, path, {
            method: 'GET',
            path: `/${path}`,
            summary: path,
            responses: answers(schema),
            handle: async () => ({}),
          })
        add('a', { type: 'string' })
        add('b', { type: 'string' })
        add('c', { type: 'integer' })
      },
    })
    await using served = await serveRest({ more: [{ name: 'same', use: routes }] })
    const { paths } = (await served.call('GET', '/openapi.json')).body as unknown as Streams
    const shown = ['/a', '/b', '/c'].map(path => paths[path]!.get!.responses['200']!.content['application/json']!.schema)
    const ref = { $ref: '#/components/schemas/Same' }
    expect(shown).to.deep.equal([ref, ref, { title: 'Same', type: 'integer' }])
  })

  it('names each operation once', async () => {
    await using served = await serveRest()
    const ids = Object.values((await documentOf(served.call)).paths).flatMap(methods =>
      Object.values(methods).map(method => method.operationId)
    )
    expect(new Set(ids).size).to.equal(ids.length)
  })

  it('says what the body of a route is', async () => {
    const route = { method: 'POST', path: '/blob', summary: 'Takes bytes', accepts: 'bytes', handle: async () => ({}) } as const
    const takers = definePlugin({ setup: scope => void scope.add(Routes, 'blob', route) })
    await using served = await serveRest({ more: [{ name: 'takers', use: takers }] })
    const { paths } = (await documentOf(served.call)) as unknown as { paths: Record<string, { post: { requestBody: object } }> }
    expect(paths['/blob']!.post.requestBody).to.deep.equal({ required: true, content: { 'application/octet-stream': {} } })
  })

  it('omits an invalid schema of a plugin route', async () => {
    const broken = definePlugin({
      setup(scope) {
        const query = { type: 'object', properties: null } as unknown as JsonSchema
        scope.add(Routes, 'broken', { method: 'GET', path: '/broken', summary: 'Is broken', query, handle: async () => ({}) })
      },
    })
    await using served = await serveRest({ more: [{ name: 'broken', use: broken }] })
    const { paths } = (await documentOf(served.call)) as unknown as { paths: Record<string, { get?: object }> }
    expect(paths['/broken']!.get).to.include({ operationId: 'broken', summary: 'Is broken' })
    expect(paths).to.have.property('/health')
  })

  it('is the same text each time, and includes routes that are added later', async () => {
    let add = () => {}
    const later = definePlugin({
      setup(scope) {
        add = () => void scope.add(Routes, 'later', { method: 'GET', path: '/later', summary: 'Later', handle: async () => ({}) })
      },
    })
    await using served = await serveRest({ more: [{ name: 'later', use: later }] })
    const texts = [await served.call('GET', '/openapi.json'), await served.call('GET', '/openapi.json')].map(entry => entry.text)
    expect(texts[0]).to.equal(texts[1])
    add()
    expect((await documentOf(served.call)).paths).to.have.property('/later')
  })
})
