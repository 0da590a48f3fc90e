import { hash, timingSafeEqual } from 'node:crypto'
import { svcError } from '@svc/core'
import type { AuthScheme } from '@svc/core/contracts'

/** The owner of the key, with the scopes. */
const HOLDER = { id: 'sample-word:holder', scopes: ['read', 'chat'] }
/** Longer texts are rejected without hashing. */
const LONGEST = 4096

/** Digests have equal lengths: comparing them in constant time reveals nothing about the key. */
//js: /** @type {(text: string) => Buffer} */
const digestOf = (text: string) => hash('sha256', text, 'buffer')

// the error does not repeat the credential
const refused = () => svcError('AUTHENTICATION_FAILED', 'the key is wrong')

//js: /** @type {(key: string) => import('@svc/core/contracts').AuthScheme} */
export const createSampleWord = (key: string): AuthScheme => ({
  // the only headers that `authenticate` receives; routes never receive them
  headers: ['x-sample-word'],
  challenge: 'SampleWord header="x-sample-word"',
  shown: { type: 'apiKey', in: 'header', name: 'x-sample-word', description: 'The key of the server.' },
  // called once before the server listens; an error fails the start
  async prepare() {
    if (key === '')
      throw svcError('SAMPLE_WORD_KEY_MISSING', 'the environment variable SAMPLE_WORD_KEY is unset or empty', {
        hint: 'Set SAMPLE_WORD_KEY to the key, or disable the plugin: svc plugins disable, or enabled: false in "plugins"',
      })
  },
  // `undefined`: the request has no credential of this kind; svc asks the next scheme
  async authenticate({ headers }, { signal }) {
    const given = headers['x-sample-word']
    if (given === undefined) return undefined
    signal.throwIfAborted()
    if (key === '' || given.length > LONGEST || !timingSafeEqual(digestOf(given), digestOf(key))) throw refused()
    return { ...HOLDER, scopes: [...HOLDER.scopes] }
  },
})
