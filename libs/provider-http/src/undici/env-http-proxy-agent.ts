export { default } from 'undici/lib/dispatcher/env-http-proxy-agent.js'
