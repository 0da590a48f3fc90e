import { defineSlot } from '@svc/core'

/**
 * A greeting in one language.
 * @typedef {{ readonly language: string, greet(name: string, ctx: import('@svc/core').CallContext): Promise<string> }} Greeting
 */

/** Greetings by the code of their language. @type {import('@svc/core').SlotToken<Greeting>} */
export const Greetings = defineSlot('greetings', { api: 1, methods: { greet: 'call' } })
