import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { runSvc } from './support/command.ts'
import { inNewHome } from './support/service.ts'

const FILE = new URL('../svc.config.ts', import.meta.url)

/** Which entry a variable turns on. */
const ENTRIES = {
  OPENAI_API_KEY: { openai: {} },
  ANTHROPIC_API_KEY: { anthropic: {} },
  GEMINI_API_KEY: { google: {} },
  GOOGLE_API_KEY: { google: {} },
  GROQ_API_KEY: { groq: { type: 'openai', preset: 'groq' } },
  OPENROUTER_API_KEY: { openrouter: { type: 'openai', preset: 'openrouter' } },
  MISTRAL_API_KEY: { mistral: { type: 'openai', preset: 'mistral' } },
  DEEPSEEK_API_KEY: { deepseek: { type: 'openai', preset: 'deepseek' } },
  TOGETHER_API_KEY: { together: { type: 'openai', preset: 'together' } },
}
const VARIABLES = Object.keys(ENTRIES)
const NAMES = [...new Set(Object.values(ENTRIES).flatMap(entry => Object.keys(entry)))]

/** The providers of the file as it is read with these variables and no other key. */
async function providersWith(variables: readonly string[]): Promise<object> {
  const before = VARIABLES.map(name => [name, process.env[name]] as const)
  for (const name of VARIABLES) delete process.env[name]
  for (const name of variables) process.env[name] = 'sk-curated'
  try {
    // the file looks at the environment while it is read: each reading is one of its own
    const read = (await import(`${FILE.href}?${variables.join('+')}`)) as { default: { providers: object } }
    return read.default.providers
  } finally {
    for (const [name, value] of before)
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
  }
}

describe('the curated build', () => {
  for (const [variable, entry] of Object.entries(ENTRIES))
    it(`turns on just what ${variable} is the key of`, async () => {
      expect(await providersWith([variable])).to.deep.equal(entry)
    })

  it('has only the provider local without a key', async () => {
    expect(await providersWith([])).to.deep.equal({})
  })

  it('has all of them in its order with all their keys', async () => {
    expect(Object.keys(await providersWith(VARIABLES))).to.deep.equal(NAMES)
  })

  it('is shown by `svc config show`, without keys', async () => {
    await inNewHome(async home => {
      const env = Object.fromEntries(VARIABLES.map(name => [name, 'sk-curated']))
      const args = ['config', 'show', 'providers', '--json', '--config', fileURLToPath(FILE)]
      const { code, out, err } = await runSvc(args, { home, env })
      expect([code, err]).to.deep.equal([0, ''])
      const { values } = JSON.parse(out) as { values: { key: string; value: unknown; source: string }[] }
      const own = values.filter(({ source }) => source.includes('svc.config.ts'))
      const names = new Set(own.map(({ key }) => key.split('.')[1]))
      expect([...names]).to.have.members(NAMES)
      expect(out).to.not.include('sk-curated')
    })
  })
})
