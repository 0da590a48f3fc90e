import type { ModelEvent, TokenLogprob } from '@svc/core/contracts'
import { hashOf } from './reply.ts'

/** Tokens that could have stood in the place of another. */
const OTHERS = ' the, a, of, and, to, in, is, it, that, for, on, with, as, at, by, an, be, this, from, or, not'.split(',')

/** The log probability of a piece of text, with `alternatives` less likely tokens. The same text always has the same. */
export function logprobsOf(text: string, alternatives: number): ModelEvent {
  // The probability of the token is between 0.6 and 0.99.
  const probability = 0.6 + (hashOf(text) % 400) / 1000
  const said = tokenOf(text, probability)
  if (alternatives <= 0) return { type: 'logprobs', tokens: [said] }
  let rest = 1 - probability
  const others = OTHERS.filter(token => token !== text)
    .slice(0, alternatives - 1)
    .map(token => {
      rest /= 2
      return tokenOf(token, rest)
    })
  return { type: 'logprobs', tokens: [{ ...said, top: [said, ...others] }] }
}

const tokenOf = (token: string, probability: number): TokenLogprob => ({
  token,
  logprob: Math.log(probability),
  bytes: [...Buffer.from(token)],
})
