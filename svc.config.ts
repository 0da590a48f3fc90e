// The build that `npm start` runs. It is the curated one: its plugins are loaded without being named (cli/src/curated.ts),
// and every key has its default (docs/reference/configuration.md). `svc config show` prints what is in force and where it comes from.
import { env } from 'node:process'
import { defineConfig } from '@svc/cli'

export default defineConfig({
  // Add a plugin by its package or path, take one out with enabled: false:
  // plugins: ['./plugins/my-plugin', { use: '@svc/plugin-tools-files', enabled: false }],
  // A provider is on when its key is set, and answers before `local`, which is always there; of several the first here.
  providers: {
    ...(env.OPENAI_API_KEY ? { openai: {} } : {}),
    ...(env.ANTHROPIC_API_KEY ? { anthropic: {} } : {}),
    ...(env.GEMINI_API_KEY || env.GOOGLE_API_KEY ? { google: {} } : {}),
    ...(env.GROQ_API_KEY ? { groq: { type: 'openai', preset: 'groq' } } : {}),
    ...(env.OPENROUTER_API_KEY ? { openrouter: { type: 'openai', preset: 'openrouter' } } : {}),
    ...(env.MISTRAL_API_KEY ? { mistral: { type: 'openai', preset: 'mistral' } } : {}),
    ...(env.DEEPSEEK_API_KEY ? { deepseek: { type: 'openai', preset: 'deepseek' } } : {}),
    ...(env.TOGETHER_API_KEY ? { together: { type: 'openai', preset: 'together' } } : {}),
  },
})
