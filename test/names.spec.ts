import { expect } from 'chai'
import { blanked, filesBelow, textOf } from './support/source.ts'

const NAMES = /openai|anthropic|claude|\bgpt-|gemini|ai-sdk|azure|ollama|lmstudio|\bvllm\b|\bgroq\b|mistral|deepseek|openrouter/i
/**
 * Where they may stand: in their own plugins, in the endpoints of their protocols and the settings of their clients, in the list of the curated build, in the
 * examples of a command, and in the names of headers that clients of these protocols send.
 */
const OWN =
  /^plugins\/providers\/|^plugins\/api\/((openai|anthropic|gemini)-api|connect)\/|^plugins\/api\/acp\/src\/commands\.ts:|^core\/kernel\/contracts\/http\.ts:|^plugins\/api\/http\/src\/config\.ts:|^cli\/src\/curated\.ts:|^plugins\/chat\/chat\/src\/commands\/providers(-test)?\.ts:/

/** Code and texts that name a provider; comments may. */
const naming = ['core', 'libs', 'plugins', 'cli']
  .flatMap(folder => filesBelow(folder, /\.m?ts$/))
  .filter(file => !/\/(test|dist)\//.test(file))
  .flatMap(file =>
    blanked(textOf(file), 'strings')
      .split('\n')
      .flatMap((line, at) => (NAMES.test(line) ? [`${file}:${at + 1}`] : []))
  )

describe('the names of providers', () => {
  it('are known only to their plugins', () => {
    expect(naming.filter(place => !OWN.test(place))).to.deep.equal([])
  })

  it('are found where they stand', () => {
    for (const name of ['openai', 'anthropic', 'google', 'ai-sdk'])
      expect(
        naming.some(place => place.startsWith(`plugins/providers/${name}/src/`)),
        name
      ).to.equal(true)
  })
})
