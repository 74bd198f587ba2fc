import { defineConfig } from '@adonisjs/core/bodyparser'

export default defineConfig({})
