// The conformance suite llmprobe against a server with provider-local, directly and behind an upstream of each wire: a second svc.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { makeWorkspace, type Workspace } from '../../cli/test/support/svc.ts'

const PROBE = fileURLToPath(new URL('node_modules/.bin/llmprobe', import.meta.url))

/** The surfaces that the suite must find. */
const SURFACES = ['models', 'chat', 'responses', 'messages', 'count-tokens']

interface Report {
  readonly conformance: {
    readonly passed: number
    readonly total: number
    readonly bySurface: readonly { readonly surface: string; readonly passed: number; readonly total: number }[]
    readonly results: readonly { readonly id: string; readonly surface: string; readonly outcome: string }[]
  }
}

/** Runs the suite in a home of its own; it sends nothing to other machines. */
async function probe(
  url: string,
  model: string
): Promise<{ readonly code: number; readonly report: Report; readonly err: string }> {
  const home = await mkdtemp(join(tmpdir(), 'svc-probe-'))
  try {
    const words = [PROBE, `${url}/v1`, '-m', model, '-k', 'any', '--no-save', '--no-bench', '--json']
    const child = spawn(process.execPath, words, {
      env: { PATH: process.env.PATH, HOME: home },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
    return { code: code as number, report: JSON.parse(out) as Report, err }
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

/** Gemini 3 cannot switch its reasoning off: svc asks for the least. */
const GEMINI_LACKS = ['responses-reasoning-effort-none']

describe('llmprobe', () => {
  let space: Workspace
  let url: string

  before(async () => {
    space = await makeWorkspace()
    const behind = await space.serve([], { env: { SVC_HOME: join(space.home, 'behind') } })
    const config = await space.write(
      'svc.config.yaml',
      `chat: { policy: { attempts: 1, breaker_failures: 0 } }
providers:
  local: {}
  oai: { type: openai, base_url: ${behind.url}/v1, api_key_env: UPSTREAM_KEY }
  res: { type: openai, api: responses, base_url: ${behind.url}/v1, api_key_env: UPSTREAM_KEY }
  ant: { type: anthropic, base_url: ${behind.url}/v1, api_key_env: UPSTREAM_KEY }
  emb: { type: openai, base_url: ${behind.url}/v1, api_key_env: UPSTREAM_KEY, models: [{ id: local/local-1, embeddings: true }] }
  goo: { type: google, base_url: ${behind.url}/v1beta, api_key_env: UPSTREAM_KEY }
`
    )
    url = (await space.serve(['--config', config], { env: { UPSTREAM_KEY: 'sk-upstream' } })).url
  })
  after(() => space?.[Symbol.asyncDispose]())

  for (const [title, model, surfaces, ...known] of [
    ['provider-local', 'local/local-1', [...SURFACES, 'embeddings']],
    ['an upstream of chat completions', 'oai/local/local-1', SURFACES],
    ['an upstream of responses', 'res/local/local-1', SURFACES],
    ['an upstream of messages', 'ant/local/local-1', SURFACES],
    ['an upstream of the Gemini API', 'goo/local/local-1', SURFACES, ...GEMINI_LACKS],
  ] as const)
    it(`finds no failed MUST with ${title}${known.length > 0 ? `, but ${known.join()}` : ''}`, async () => {
      const { code, report, err } = await probe(url, model)
      const { conformance } = report
      const failed = conformance.results.filter(({ outcome }) => outcome === 'fail')
      expect(
        failed.map(({ id }) => id),
        JSON.stringify(failed).slice(0, 3000)
      ).to.deep.equal(known)
      expect(conformance.bySurface.map(({ surface }) => surface)).to.include.members([...surfaces])
      expect(conformance.total).to.be.above(100)
      expect(code, err).to.equal(known.length > 0 ? 1 : 0)
    })

  // the other surfaces fail: a model that makes embeddings does not chat
  it('finds no failed MUST in the embeddings of an upstream', async () => {
    const { conformance } = (await probe(url, 'emb/local/local-1')).report
    const ours = conformance.results.filter(({ surface }) => surface === 'embeddings')
    expect(ours.filter(({ outcome }) => outcome !== 'pass')).to.deep.equal([])
    expect(ours.length).to.be.above(0)
  })
})
