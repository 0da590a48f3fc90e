// The SDKs as their users call them, in a process that has only them.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { makeWorkspace, type Workspace } from '../../cli/test/support/svc.ts'

const KEY = 'sk-canary-of-the-sdks'
const CALLS = fileURLToPath(new URL('sdk-calls.mjs', import.meta.url))

interface Result {
  readonly failed?: string
  readonly text?: string
  readonly streamed?: string
  readonly tool?: object
  readonly vectors?: readonly number[]
  readonly error?: readonly unknown[]
  readonly models?: number
  readonly tokens?: number
  readonly response?: string
}

describe('SDKs', () => {
  let space: Workspace
  let results: Readonly<Record<string, Result>>

  before(async () => {
    space = await makeWorkspace()
    const config = await space.write('svc.config.yaml', 'server: { auth: { enabled: true } }\n')
    const { url } = await space.serve(['--config', config], { env: { SVC_API_KEY: KEY } })
    const { stdout } = await promisify(execFile)(process.execPath, [CALLS, url, KEY], { timeout: 300_000 })
    results = JSON.parse(stdout) as Readonly<Record<string, Result>>
  })
  after(() => space?.[Symbol.asyncDispose]())

  for (const name of [
    'openai 7',
    'openai 6',
    '@anthropic-ai/sdk',
    '@google/genai',
    'ai 7, openai-compatible',
    'ai 7, openai chat',
    'ai 7, openai responses',
    'ai 7, anthropic',
    'ai 6, openai-compatible',
    'ai 6, openai responses',
    '@langchain/openai',
  ])
    it(`${name} gets a text, a stream and a call of a tool`, () => {
      const result = results[name]!
      expect(result.failed).to.equal(undefined)
      expect([result.text, result.streamed]).to.deep.equal(['You said: say hello', 'You said: say hello'])
      expect(result.tool).to.deep.equal({ city: 'Ulm' })
    })

  for (const name of ['openai 7', 'openai 6'])
    it(`${name} gets embeddings, models, a response, and an error with its code`, () => {
      const { vectors = [], models, response, error } = results[name]!
      expect(vectors).to.have.length(2)
      expect(vectors[0]).to.be.above(0)
      expect(models).to.be.above(1)
      expect(response).to.equal('You said: say hello')
      expect(error).to.deep.equal([404, 'model_not_found'])
    })

  it('@anthropic-ai/sdk counts tokens, and gets an error with its type', () => {
    const { tokens, error } = results['@anthropic-ai/sdk']!
    expect(tokens).to.be.above(0)
    expect(error).to.deep.equal([404, 'not_found_error'])
  })

  it('@google/genai sends the result of a function, lists models, counts tokens, and gets an error with its status', () => {
    const { response, models, tokens, error } = results['@google/genai']!
    expect(response).to.contain('sunny')
    expect(models).to.be.above(2)
    expect(tokens).to.be.above(0)
    expect(error).to.deep.equal([404, 'NOT_FOUND'])
  })

  for (const [name, count] of [
    ['ai 7, embeddings', 1],
    ['@google/genai', 2],
    ['@langchain/openai', 2],
  ] as const)
    it(`${name}: vectors of one length`, () => {
      const { failed, vectors = [] } = results[name]!
      expect(failed).to.equal(undefined)
      expect(vectors).to.have.length(count)
      expect(new Set(vectors).size).to.equal(1)
    })
})
