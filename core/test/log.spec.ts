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
})
