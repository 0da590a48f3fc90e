import { definePlugin, startHost, svcError } from '@svc/core'
import { expect } from 'chai'

/** The lines that a plugin's setup writes. */
async function linesOf(write: Parameters<typeof definePlugin>[0]['setup']): Promise<Record<string, unknown>[]> {
  const lines: string[] = []
  const plugins = [{ name: 'writer', use: definePlugin({ setup: write }) }]
  await using _host = await startHost({ plugins, log: { destination: { write: line => void lines.push(line) } } })
  return lines.map(line => JSON.parse(line))
}

describe('the log', () => {
  it('carries the name of the plugin', async () => {
    const [line] = await linesOf(({ log }) => log.info({ size: 1 }, 'made'))
    expect(line).to.include({ plugin: 'writer', size: 1, msg: 'made' })
  })

  it('never writes what is called a secret, however deep it stands', async () => {
    const facts = {
      api_key: 'hush',
      headers: { Authorization: 'hush' },
      list: [{ password: 'hush', user: 'me' }],
      token: { of: 'hush' },
    }
    const [line] = await linesOf(({ log }) => log.warn(facts))
    expect(line).to.deep.include({
      api_key: '[secret]',
      headers: { Authorization: '[secret]' },
      list: [{ password: '[secret]', user: 'me' }],
      token: '[secret]',
    })
    expect(facts.headers.Authorization, 'the facts themselves stay as they are').to.equal('hush')
  })

  it('writes an error with its stack and cause, without the secrets of its details', async () => {
    const error = svcError('BROKEN', 'it broke', { details: { access_token: 'hush', at: 3 }, cause: new Error('why') })
    const [line] = await linesOf(({ log }) => log.error({ err: error }, 'failed'))
    const { err } = line as { err: { code: string; stack: string; details: object } }
    expect(err.code).to.equal('BROKEN')
    expect(err.stack).to.include('log.spec.ts').and.include('why')
    expect(err.details).to.deep.equal({ access_token: '[secret]', at: 3 })
  })

  it('knows a secret by the end of its name, however it is written', async () => {
    const names = [
      'x-goog-api-key',
      'api-key',
      'set-cookie',
      'Proxy-Authorization',
      'openai_api_key',
      'refresh_token',
      'private_key',
      'apiKey',
      'clientSecret',
      'tokens',
    ]
    const [line] = await linesOf(({ log }) => log.info(Object.fromEntries(names.map(name => [name, 'hush']))))
    expect(JSON.stringify(line)).not.to.include('hush')
    expect(line).to.include(Object.fromEntries(names.map(name => [name, '[secret]'])))
  })

  it('still shows what counts tokens', async () => {
    const facts = { tokens_used: 7, tokens: { input: 3, output: 4 }, token: 2, maxTokens: 9, monkey: 'Kim' }
    const [line] = await linesOf(({ log }) => log.info(facts))
    expect(line).to.deep.include(facts)
  })

  it('cuts what stands too deep instead of writing it unseen', async () => {
    let facts: object = { password: 'hush', plain: 'unseen' }
    for (let depth = 0; depth < 10; depth++) facts = { inner: facts }
    const round: Record<string, unknown> = {}
    round.self = round
    const [line] = await linesOf(({ log }) => log.info({ facts, round }))
    expect(JSON.stringify(line)).to.include('[deep]').and.not.include('hush').and.not.include('unseen')
  })

  it('hides who logs in in an address, and the facts of an error under any name', async () => {
    const error = svcError('BROKEN', 'fetch of https://me:hush@host/a failed', { details: { api_key: 'hush' } })
    const url = 'postgres://me:hush@db.host:5432/x?mail=a@b'
    const [line] = await linesOf(({ log }) => log.error({ url, file: 'file:///a/@svc/core', failure: error, err: error }))
    expect(line).to.include({ url: 'postgres://[secret]@db.host:5432/x?mail=a@b', file: 'file:///a/@svc/core' })
    expect(JSON.stringify(line)).not.to.include('hush')
  })

  it('tells what an error came from, and nothing twice', async () => {
    const inner = new Error('the socket is closed')
    const round = new Error('round')
    round.cause = round
    const [line, same, endless] = await linesOf(({ log }) => {
      log.error({ err: new Error('no answer', { cause: inner }) })
      log.error({ err: svcError('BROKEN', 'the socket is closed', { cause: inner }) })
      log.error({ err: round })
    })
    expect(line).to.have.nested.property('err.message', 'no answer: the socket is closed')
    expect(same).to.have.nested.property('err.message', 'the socket is closed')
    expect(endless).to.have.nested.property('err.message', 'round')
  })
})
